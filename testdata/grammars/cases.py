"""Grammars in GBNF with texts to judge."""

CASES = [
    ("one text", 'root ::= "yes" | "no"', ["yes", "no", "", "yes ", "n", "maybe"]),
    ("dashes in names, comments, blank lines", '# a date\nroot ::= four-digits "-" two-digits # no days\n\n'
     'two-digits ::= [0-9] [0-9]\nfour-digits ::= two-digits two-digits', ["2026-11", "2026-1", "20-11", "2026-11-30"]),
    ("an alternative on the next line", 'root ::= ("a" |\n  "b"\n  | "c") "."', ["a.", "b.", "c.", "d.", "a"]),
    ("an empty alternative", 'root ::= "a" ("b" | ) "c"', ["abc", "ac", "ab", "abbc"]),
    ("optional, some, any", 'root ::= "-"? [1-9]+ ("." [0-9]*)?', ["-12", "3.", "3.14", "0", "-", "1.2.3"]),
    ("counted repetitions", 'root ::= "a"{2} "b"{1,} "c"{0,2}', ["aab", "aabbbcc", "ab", "aac", "aabccc"]),
    ("repeated groups", 'root ::= ("ab" ","){1,2} "."', ["ab,.", "ab,ab,.", ".", "ab,ab,ab,."]),
    ("a negated class", 'root ::= "\\"" [^"\\n\\\\]* "\\""', ['"a b"', '""', '"a"b"', '"a\nb"', '"a\\b"', '"ä€😀"']),
    ("escapes of characters", r'root ::= "\x41\u00e4\U0001F600\t" [\x30-\x32\-\]]+', ["Aä😀\t0-]2", "Aä😀\t3", "Aä\t0"]),
    ("any character", 'root ::= . "x" .{2}', ["axbc", "\nx\n\n", "äx€😀", "xabc", "axb"]),
    ("a class with a dash at its end", 'root ::= [a-c-]+', ["a-c", "-", "d", "ab-"]),
    ("ranges beyond ASCII", 'root ::= [ぁ-ん]+ "、" [一-龯]', ["さくら、花", "サ、花", "さ、a"]),
    ("nested lists", 'root ::= list\nlist ::= "[" (item ("," item)*)? "]"\nitem ::= [0-9]+ | list',
     ["[]", "[1]", "[1,[2,[3]],4]", "[1,]", "[[]", "1", "[1 ,2]"]),
    ("sums", 'root ::= term (("+" | "-") term)*\nterm ::= factor (("*" | "/") factor)*\n'
     'factor ::= [0-9]+ | "(" root ")"', ["1", "1+2*3", "(1+2)*(3-4)", "1+", "(1", "1**2"]),
    ("balanced parentheses", 'root ::= "(" root ")" root | ""', ["", "()", "(())()", "(()", ")("]),
    ("a text and its mirror", 'root ::= "a" root "a" | "b" root "b" | "|"', ["|", "ab|ba", "ab|ab", "aa|aa"]),
    ("JSON", r'''root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,3})? ws
ws ::= | " " | "\n" [ \t]{0,20}''',
     ['{}', '{"a": [1, 2.5e-3, true], "b": {"c": "d\\u00e4\\n"}}', '{"a":null}\n  ', '{"a": 01}', '{"a" : 1}', '[1]',
      '{"a": "b\n"}', '{"a": 1,}', '{ "a": -0.5}']),
    ("an assignment of a small language", r'''root ::= (statement ";" nl)+
statement ::= name " = " value | "print(" value ")" | "if (" value ") {" nl root "}"
value ::= name | number | value-list
value-list ::= "[" value ("," value)* "]"
name ::= [a-z] [a-z0-9]*
number ::= [0-9]+
nl ::= "\n"?''', ["a = 1;", "x1 = [y,[2,z]];\nprint(x1);\n", "if (a) {\nb = 2;\n};\n", "if (a) { b = 2; };", "1 = a;", "iff = 3;"]),
    ("moves of a game", r'''root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | piece | castle) [+#]?
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
piece ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
castle ::= "O-O" "-O"?''', ["1. e4 e5\n2. Nf3 Nc6\n", "1. e4 e5\n", "1. e4 e5\n2. O-O Qxd8+\n", "1. e4 e9\n2. a4 a5\n"]),
    ("one line in each direction", 'root ::= ("- " [^\\r\\n]+ "\\n")+', ["- a\n- b\n", "- a", "-a\n", "- \n"]),
    ("a rule through another", 'root ::= a\na ::= "x" b?\nb ::= "y" a', ["x", "xyx", "xyxyx", "xy", "yx"]),
    ("the same text at two places", 'root ::= ("ab" | "a") "bc"', ["abbc", "abc", "ab", "bc"]),
    ("keywords and names in a list", 'root ::= entry ("," root)?\nentry ::= "end" | [a-z]+ ":" [0-9]+',
     ["end", "a:1,end", "ending:2", "end:3,b:4", "end,", "enda"]),
    ("repetitions of repetitions", 'root ::= ("a"{2}){2} ("b"?)* ("c"+)? "1" "d"{0} ("-"?)? [0-9]+', ["aaaa10", "aaaabbcc1-2", "aaa10", "aaaa1", "aaaad10"]),
    ("texts that end within a class", 'root ::= "<t>" ([^<] | "<" [^/])* "</t>" object\nobject ::= "{" object? "}"',
     ["<t>a<b</t>{}", "<t></t>{{}}", "<t>a</t>", "<t>a</t>{", "<t>a{}"]),
    ("comments in parentheses", 'root ::= "(" root ")" | "/*" ([^*] | "*"+ [^*/])* "*"+ "/"', ["(/* a */)", "((/***/))", "(/* a )", "(/* a */"]),
    ("a class that has the text after it", 'root ::= "(" root ")" | [a-z-]+ "-end" | [a-z]* "x"', ["(ab-end)", "((a-b-end))", "(abx)", "x", "(ab)", "(-end)"]),
    ("names before marks", 'root ::= name " = " root | name ws "(" root ")" | name ws\nname ::= [a-z]+\nws ::= " "*', ["a", "a = b", "f(x)", "f (x )", "a = f(b = c)", "a =b", "f("]),
]

# Grammars that are refused.
FAULTS = [
    ("a rule without a definition", 'root ::= other'),
    ("no start rule", 'other ::= "a"'),
    ("an open literal", 'root ::= "a'),
    ("an open class", 'root ::= [a'),
    ("an open group", 'root ::= ("a"'),
    ("a group without a beginning", 'root ::= "a")'),
    ("no `::=`", 'root "a"'),
    ("an operator without an element", 'root ::= * "a"'),
    ("bounds without numbers", 'root ::= "a"{}'),
    ("an unknown escape", r'root ::= "\q"'),
    ("too few digits of an escape", r'root ::= "\u12"'),
]

# Grammars of Python's Lark with texts to judge.
PATCH = r'''start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
'''

LARK = [
    ("a patch", PATCH, [
        "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a b.rs\n*** Move to: c.rs\n@@ fn main\n-old\n+new\n same\n*** End Patch",
        "*** Begin Patch\n*** Delete File: a\n*** End Patch",
        "*** Begin Patch\n*** Delete File: \n*** End Patch",
        "*** Begin Patch\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n@@\nold\n*** End Patch",
        "*** Add File: a\n+b\n",
    ]),
    ("aliases, priorities, inlined rules", '?start: a -> first\n     | b -> second\n!a.2: "x" B\nb: "y" B?\nB.3: "z" | "w"', ["xz", "y", "yw", "x", "z"]),
    ("without regard to case", 'start: "select"i " " /[a-c]+/i', ["SELECT abC", "Select d", "select a"]),
    ("ranges and counts", 'start: "a".."c" ~ 2..3 "0".."9" ~ 2', ["ab12", "abc12", "a12", "abcd12", "ad12"]),
    ("optional groups", 'start: ["-"] DIGIT+ ["." DIGIT+]\n%import common.DIGIT', ["-12.5", "7", "7.", "-"]),
    ("imports of several, comments", '// a comment\nstart: SIGNED_INT "," ESCAPED_STRING // another\n%import common (SIGNED_INT, ESCAPED_STRING)',
     ['+1,"a"', '-12,"a\\"b"', '1,a', ',""', '1,"']),
    ("an import by another name", 'start: NUM WS "kg"\n%import common.NUMBER -> NUM\n%import common.WS', ["1.5 kg", "2e3\nkg", "kg", "1kg"]),
    ("escapes", r'start: "\n\t\"" /\/[\/a]\.x/', ['\n\t"//.x', '\n\t"/a.x', '\n\t"/b.x', 'nt"//.x']),
]

# Grammars that have no regular expression here.
NO_PATTERN = [
    ("recursion", 'start: "(" start? ")"'),
    ("recursion of two rules", 'start: a\na: "a" b\nb: "b" a | "c"'),
    ("ignored texts", 'start: "a" "b"\n%ignore " "'),
    ("a rule that is not defined", 'start: other'),
    ("an unknown import", 'start: X\n%import common.X'),
    ("look-around", 'start: /a(?=b)/ "b"'),
    ("templates", 'start: list{"a"}\nlist{x}: x ("," x)*'),
    ("no start rule", 'a: "b"'),
    ("an open text", 'start: "a'),
]
