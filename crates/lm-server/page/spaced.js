/** JSON of an object with a space after `:` and `,`, as chat templates write it: small models read it better. */
export function spaced(value) {
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${JSON.stringify(part)}`).join(", ")}}`;
}
