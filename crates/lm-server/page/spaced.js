/** JSON with a space after `:` and `,`, as chat templates write it: small models read it better. */
export function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${spaced(part)}`).join(", ")}}`;
}
