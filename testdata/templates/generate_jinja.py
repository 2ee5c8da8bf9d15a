"""What Jinja2, as transformers sets it up, makes of small snippets: Python's text, numbers, formats, slices and oddities.

    python generate_jinja.py      # writes jinja.json and minijinja.json

A case holds its template and the text, or null where rendering fails.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = Path(__file__).parent

CONTEXT: dict[str, Any] = {
    "s": "one two-three, One",
    "u": "ßtraße Ǆ ΑΣ 1² ½",
    "lines": "a\r\nb\rc\x0bd\u2028e\n",
    "tabs": "a\tbc\td",
    "markup": "<p class='x'>a &amp; b</p>  <!-- c > d -->e",
    "n": [3, 1.5, True, -2],
    "d": {"items": {"type": "x"}, "b": 2, "a": [1, {"c": None}], "get": 0},
    "rows": [{"k": "b", "v": 1}, {"k": "A", "v": 3}, {"k": "b", "v": 2}],
    "none": None,
}
# The clock of `strftime_now`, in UTC, without a time zone as transformers has it.
NOW = datetime(2025, 3, 4, 5, 9, 26, 53589)

# Each is put between `{{` and `}}`.
EXPRESSIONS = """
s.split() | s.split(none, 1) | s.rsplit(none, 1) | s.split(',', 1) | s.rsplit('o') | s.rsplit('o', 1) | ''.split() | ''.split(',')
s.partition(' ') | s.rpartition('zz') | s.partition('zz') | lines.splitlines() | lines.splitlines(true) | s.split('')
s.title() | s@title | s.swapcase() | s.capitalize() | u.upper() | u.lower() | u.title() | u.casefold() | u@capitalize
s.find('o', 1) | s.find('o', -3) | s.rfind('o') | s.index('zz') | s.count('o') | s.count('') | s.count('o', 1, -1) | s.startswith('two', 4)
s.startswith(('x', 'one')) | s.endswith('One', 0, 3) | s.startswith(['one']) | 'a'.join('xyz') | '-'.join([1])
s.center(25, '*') | 'ab'.center(5) | 'abc'.center(6) | '-7'.zfill(5) | 'x'.ljust(3) ~ '|' | 'x'.rjust(3, '0') | 'x'.center(4, 'ab') | tabs.expandtabs() | tabs.expandtabs(3)
'1²'.isdigit() | '1²'.isdecimal() | '½'.isnumeric() | '½'.isdigit() | 'Ab C'.istitle() | 'a_1'.isidentifier() | ''.isalpha() | ' \t'.isspace() | 'é'.isascii()
s.removeprefix('one ') | s.removesuffix('zz') | s.replace('o', '0', 1) | s.replace('', '.', 3) | s@replace('o', 0) | 'aaa'.strip('a') | ' x '.strip(none)
'%5d|%-5d|%05d|%+d|% d' % (42, 42, 42, 42, 42) | '%x %X %#x %o' % (255, 255, 255, 8) | '%e %.2e %g %G' % (1234.5, 0.00012, 1e10, 1e-10) | '%.3f|%8.2f|%-8.1f|' % (2.0005, 3.14159, 2.25)
'%s %r' % ('é', "it's") | '%%' % () | '%d' % 3.99 | '%c%c' % ('a', 98) | '%5.1s|' % 'xyz' | '%.3g %.5d' % (65, 42) | '%(b)s-%(a)r' % {'a': [1], 'b': none} | '%*d' % (5, 42) | '%s' % (1,) | '%s' | '%d' % 'x' | '%s' % (1, 2) | 'x' % [] | '%y' % 1
'{} {}'.format(1, 'a') | '{1}{0}'.format(1, 2) | '{a.b}{c[0]}'.format(a={'b': 5}, c=[7]) | '{:>6}|{:<6}|{:^6}|{:*^7}'.format('a', 'b', 'c', 'd') | '{:05d} {:+} {:,} {:_x}'.format(42, 3, 1234567, 1048575)
'{:.2f} {:e} {:g} {:%}'.format(3.14159, 1234.5, 1e-7, 0.256) | '{:08.3f}|{:=+7}'.format(-3.14159, 42) | '{!r:>8}|{!s}'.format('a', none) | '{:{w}}|'.format('x', w=4) | '{{}}'.format() | '{:.2} {:.3}'.format('xyz', 2.0) | '{:^7}{}'.format(true, true)
'{}{0}'.format(1) | '{'.format() | '{}'.format() | '{:d}'.format('x') | '{:,.2f}'.format(1234567.891) | '{:#b} {:c}'.format(5, 65) | '{a}'.format_map({'a': 1}) | '{:10}|'.format([1])
1 / 2 | 7 // 2 | -7 // 2 | 7 // -2 | -7 % 3 | 7 % -3 | 7.5 // 2 | -7.5 % 2 | 2 ** 10 | 2 ** -1 | 0.1 + 0.2 | 1e16 | 1e15 | 1.0 | 1e-5 | 123456789012345678901234567890 | -0.0 | 1 / 0 | 5 % 0 | true + true | 3 * 'ab' | 'ab' * -1 | [1] * 2 | (1,) + (2,) | [1] + (2,)
1 < 2 < 3 | 1 < 2 > 2 | 1 == 1.0 | true == 1 | '1' == 1 | [1, 2] < [1, 3] | 'a' < 1 | none < 1 | 'b' in s | 1 in [1.0] | 'x' in none | none in s | 2 in d.a | 'b' in d | not 'b' in d | nothing in [1] | nothing == nothing2 | 1 if none | 'a' ~ 1 ~ none ~ 1.0
s[::-1] | s[1:8:3] | s[-3:] | s[:-20] | n[::2] | n[5:1:-2] | n[10] | n[-1] | range(10)[2:8:3] | range(5)[-1] | d[1:] | s[1.5] | s[true] | (1, 2, 3)[1:] | 'abc'[none:2]
d.items.type | d['items'].type | d['get'] | d.b | d.copy().b | d.items is defined | d.keys() | d.values() | d.items() | d@items@list | d@list | d.zz | d.zz.yy | d.zz is defined | n.append(1) | d.pop('b') | d.__class__ | s.__len__ | d.update
d@length | n@sum | n@sort | n@sort(reverse=true) | n@max | []@min | rows@map(attribute='v')@list | rows@sort(attribute='k,v')@map(attribute='v')@list | rows@groupby('k') | rows@groupby('k', case_sensitive=true)@map('first')@list | rows@selectattr('v', 'gt', 1)@list | rows@rejectattr('zz')@length | rows@map(attribute='zz', default=0)@list | rows@sum(attribute='v') | rows@unique(attribute='k')@list
[3, 1, 2]@batch(2, 0)@list | [1, 2, 3]@slice(2, 0)@list | [1, 2]@reverse@list | 'ab'@reverse | 'ab'@list | n@first | n@last | []@first is defined | [1, 'a', 1.0, true]@unique@list | d@dictsort | d@dictsort(by='value') | {'b': 1, 'A': 2}@dictsort(reverse=true) | [1, none]@sort | ['b', 'A']@sort(true) | s@sort@join
'3.7'@int | '0x1f'@int(0, 16) | '0b11'@int(base=0) | 'x'@int(9) | '1_000'@int | none@int | '1e3'@float | 'x'@float | ' 5 '@int | 2.5@round | 3.5@round | 2.675@round(2) | 1234@round(-2) | 2.1@round(0, 'ceil') | -2.5@abs | 1000000@filesizeformat | 1024@filesizeformat(true) | -0.1@filesizeformat
markup@striptags | markup@e | markup@safe ~ '<' | (markup@safe) + '<' | '<' + ('>'@safe) | ('<%s>'@safe) % '<' | ('a<b'@e)@upper | '<'@e@e | '<'@e@forceescape | [('<'@safe)] | ('<b>'@safe)[0] | ('<b>'@safe)@list | 'a b/c?é'@urlencode | {'a b': '&', 'c': 1}@urlencode | {'a': '"', 'b': none}@xmlattr | {'a b': 1}@xmlattr
lines@indent | lines@indent(2, true, true) | 'a\n\nb'@indent('> ') | s@truncate(9) | s@truncate(9, true) | s@truncate(9, false, '~', 0) | s@wordcount | s@trim('oneO') | none@default('x') | none@default('x', true) | none@string | none@upper | 'x'@center(5)
d@tojson | d@tojson(indent=1) | d@tojson(true, none, [',', ':'], true) | u@tojson(ensure_ascii=true) | 'a"\\\x7f\u2028'@tojson | [1e-7, 1e20, -0.0, 12345678901234567890]@tojson | {1: 1, none: 2, true: 3}@tojson | nothing@tojson | d.keys()@tojson | n@map('string')@tojson | {(1, 2): 3}@tojson | ('<'@safe)@tojson
[s, none, 1.0, ('a',), {}, "it's", '"' ~ "'", '\n\t\\\x00é\u200b'] | range(3) | range(0, 9, 2) | (1,) | () | {'a': [nothing]} | [range(2)] | dict(a=1, **{'b': 2}) | dict([['x', 1]]) | dict.fromkeys('ab') | [d.items()]
nothing | nothing.x | nothing() | nothing + 1 | nothing@length | nothing@list | nothing is none | nothing[1:] | -nothing | nothing@int | nothing ~ 'x' | nothing == none | [nothing]@string | nothing@join | s.nothing | s.nothing() | n is sequence | d is sequence | d.keys() is sequence | s is iterable | none is iterable | nothing is iterable | n@map('abs') is iterable | 1 is number | true is integer | d.get is callable | 'A' is upper | 3 is divisibleby 3 | 3 is divisibleby(2) | 1 is in [1] | 'e' is filter | 'odd' is test | s is sameas s | 1 is sameas true
{range(3): 1} | {range(0): 1}[range(5, 5)] | d.get(range(3)) | [range(0, 4, 2), range(0, 3, 2), range(2)]@unique@list | {namespace: 1}[namespace] | {(range(2), 1): 2} | {d.keys(): 1} | {d.values(): 1}@length
range(5, 0, -2)[::2] | range(10)[7:2:-3] | range(0, 10, 3)[1:] | dict(nothing) | ''.endswith(2, 1) | s.startswith('x', 99) | s@truncate(99, false, n) | s@truncate(5, false, n) | s@truncate(3, false, nothing) | rows[0] in d.keys() | 'b' in d.keys() | s@attr(1) | d@attr(nothing) | [1]@attr('x') is defined
'٣'@int | '１２'@int | '-٣'@int | ' ٣ '@int | '٣_1'@int | '٣'@int(7, 8) | '٩'@int(7, 8) | '0x٣'@int(7, 16) | '²'@int(7) | '½'@int(7) | '٣.٥'@float | '٣e٢'@float | '１_2'@float | '0x1f'@int(7, 10) | '\u2007 5\u3000'@int | '+5'@int | '+ 5'@int(7) | '--5'@int(7) | '٣.٥'@int | '-٣.٥'@int | 'nan'@float | 'inf'@float | 'Infinity'@float | 'infinit'@float | 'nan'@int(7) | 'inf'@int | '1e'@float(7) | '.5'@float | '5.'@float | '.'@float(7) | '1_.5'@float(7) | '1._5'@float(7) | '1e1_0'@float | '1e_1'@float(7) | '\x1c5'@int | '\x1c5'@float | '5\x00'@int(7) | ''@int(7) | '_5'@int(7) | '0x_f'@int(7, 16) | '0x__f'@int(7, 16) | '0x'@int(7, 16) | '0x_'@int(7, 16) | '0b_1'@int(7, 0) | '𝟗𑁦'@int | '᭙'.isdecimal() | '𑁯'.isdigit() | '0_7'@int(9, 0) | '07'@int(9, 0) | '00'@int(9, 0) | '1e2'@int | '1_000.5'@int | 'z'@int(7, 36) | '1'@int(7, 37) | '1'@int(7, 1) | '1'@int(7, -1)
dict(a=2**70) | dict(a=2 ** 70)@tojson | '{a}'.format(a=2**70) | 1.5@round(precision=2**70) | 1.5@round(-2**70) | 15@round(2**70) | -1.5@round(-310) | 1e308@round(-308) | 1.7e308@round(-308) | 5e-324@round(323) | 5e-324@round(324) | 5e-324@round(400) | 15@round(-400) | 7.0228318852010105e+168@round(-1) | 25.0@round(-1) | 35.0@round(-1) | 5.0@round(-1) | -5.1@round(-1) | 15.0@round(-1) | 4.9@round(-1) | 51.0@round(-2) | 50.0@round(-2) | -50.1@round(-2) | 9.5@round(-1) | 95.0@round(-1) | 0.7@round(-1) | 1.5@round(400, 'ceil') | '%d' % 2 ** 70 | '%d' % (2 ** 70) | 2 ** 70 | 2 ** 100 // 3 | -(2 ** 100) % 7 | n@sum(start=2**70) | 'x'@int(default=2**70) | 'ab'@indent(width=2**70) | s@truncate(length=2**70) | range(2**70) | 'a' * 2 ** 70 | n[2**70] | n[:2**70] | s[-2**70:] | 'ab'.center(2**70) | s.split(' ', 2**70) | s.replace('o', '0', 2**70) | s.find('o', -2**70) | s@replace('o', '0', 2**70) | [1, 2, 3]@batch(2**70)@list | [1, 2, 3]@batch(-1)@list | [1, 2, 3]@batch(-1, 0)@list | [1, 2, 3]@batch(0)@list | [1, 2, 3]@batch(0, 0)@list | n@tojson(indent=2**70) | '{:{w}}'.format('x', w=2**70) | '%*d' % (2**70, 1) | 2 ** 70 == 2.0 ** 70 | 2 ** 70@float | 2 ** 70@string@length | 2 ** 70 / 2 ** 69 | 2**70@abs | (2**70)@filesizeformat | 'x'@center(2**70)@length | lines.expandtabs(2**70)@length
strftime_now('%Z') | strftime_now('[%z]') | strftime_now('%s') | strftime_now('%f') | strftime_now('%-d/%-m %-H %-I %-j') | strftime_now('%e %k %l') | strftime_now('%P %p') | strftime_now('%G-W%V-%u %w %U %W') | strftime_now('%j %C %g %y') | strftime_now('%h %b %B %a %A') | strftime_now('%D %T %R %r %F') | strftime_now('%c') | strftime_now('%x') | strftime_now('%X') | strftime_now('%n%t%%') | strftime_now('%Ey %EY %Od %OH') | strftime_now('%^a %^B %#Z %#a') | strftime_now('%_d %_m %0e') | strftime_now('%10Y %3d') | strftime_now('%Q') | strftime_now('%') | strftime_now('é %Y 年') | strftime_now('') | strftime_now('%+') | strftime_now('%v') | strftime_now('%:z') | strftime_now('%i') | strftime_now('%L') | strftime_now('%-') | strftime_now('%1') | strftime_now('%E') | strftime_now('%N') | strftime_now('%q%J%K%o%O') | strftime_now('%.3f %3f') | strftime_now(1) | strftime_now() | strftime_now('%-y %_H %^p') | strftime_now('%-%Y %E% %Oé %é %Ef') | strftime_now('%EY%OY%Ec%-c') | strftime_now('%5H|%05H|%_5H %#p %#B') | strftime_now(format='%Y')
"""

TEMPLATES = [
    "{% for x in [] %}a{% else %}b{% endfor %}{% for x in [1] %}{% continue %}{% else %}c{% endfor %}{% for x in [1] %}{% break %}{% else %}d{% endfor %}",
    "{% for x in 'abc' %}{{ loop.index }}{{ loop.last }}{{ loop.nextitem }}{{ loop.previtem }},{% endfor %}",
    "{% for x in n if x > 0 %}{{ loop.length }}{{ loop.revindex }}{{ x }},{% endfor %}",
    "{% for x in n | select %}{{ loop.length }}{{ loop.revindex0 }}{{ loop.last }}{% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [[1, [2]], 3] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% set g = n | map('string') %}{{ g | list }}{{ g | list }}{{ g | length }}",
    "{% set x = 1 %}{% for i in [1] %}{{ x }}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0) %}{% for i in range(4) if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ i }}{% endfor %}{{ ns.n }}{{ ns.zz is defined }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{% set ns._x = 1 %}",
    "{% set x = {} %}{% set x.a = 1 %}",
    "{% macro f(a, b=a ~ '!', *c) %}{{ a }}{% endmacro %}",
    "{% macro f(a, b=1) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}{{ f(b=5) }}{{ f(*[1, 2], **{'y': 3}) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}",
    "{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{% for x in [2] %}{{ f() }}{% endfor %}{{ f.name }}",
    "{% macro f(x) %}[{{ caller(x) }}]{% endmacro %}{% call(y) f(3) %}{{ y + 1 }}{% endcall %}{% macro g() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ g() }}",
    "{% set x | upper | trim %} a {{ s }} {% endset %}{{ x }}{% filter replace('o', '0') | upper %}{{ s }}{% endfilter %}",
    "{% with a = 1, b = s %}{{ a }}{{ b }}{% set c = 2 %}{% endwith %}{{ a }}{{ c }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{% set j = joiner('|') %}{{ j() }}{{ j() }}",
    "{% generation %}a{% set x = 1 %}{% endgeneration %}{{ x is defined }}",
    "{% block b %}a{{ s }}{% endblock %}{% print s, 1 %}",
    "{% for x in [1, 2] %}{% block b %}[{{ x }}{{ s }}{{ loop is defined }}]{% endblock %}{% endfor %}",
    "{% for x in [1, 2] %}{% block b scoped %}[{{ x }}{{ loop.index }}]{% endblock %}{% endfor %}",
    "{% set x = 1 %}{% block b %}{{ x }}{% set x = 2 %}{{ x }}{% endblock %}{{ x }}{% set x = 3 %}{{ self.b() }}",
    "{% with x = 1 %}{% block b %}{{ x is defined }}{% endblock %}{% block c scoped %}{{ x }}{% block d %}{{ x }}{% endblock %}{% endblock %}{% endwith %}{{ self.d() }}",
    "{% macro f(x) %}{% block b %}[{{ x }}]{% endblock %}{% endmacro %}{{ f(1) }}{% if true %}{% set x = 2 %}{% endif %}{{ f(1) }}",
    "{% block a %}a{{ self.b() }}{% endblock %}{% block b %}b{% endblock %}{{ self.a() | upper }}{{ self['b']() }}{{ self.a is defined }}{{ self.z is defined }}{{ self.a is callable }}{{ self is callable }}{{ self }}",
    "{% for x in [1] %}{% block a scoped %}{{ x }}{% endblock %}{{ self.a() }}{% endfor %}",
    "{% block a %}{% set z = 1 %}{% endblock %}{{ z is defined }}",
    "{{ self.z() }}",
    "{% block a %}{% endblock %}{{ self.a(1) }}",
    "{% block a %}{{ self.a() }}{% endblock %}",
    "{% block a %}1{% endblock %}{% block a %}2{% endblock %}",
    "a {%- if true -%} b {%- endif -%} c\n  {%+ if true %}\n d\n  {% endif %}\n e {#- f -#} g\n",
    "\n  {{- 'a' -}}  \n b {% raw %} {{ x }} {%- endraw %}\n c\n\n",
    "{% if x is defined and x.y %}a{% elif d.b == 2 %}b{% else %}c{% endif %}{{ 'a' if d.zz else 'b' }}",
    "{% if true %}a{% else %}{{ s | nosuch }}{% endif %}{{ 1 if true else (1 | nosuch) }}",
    "{% for x in [1] %}{{ x | nosuch }}{% endfor %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b) = [3, 4] %}{{ a }}{{ b }}{% set a, b = [1] %}",
    "{{ raise_exception('no') }}",
    "{% break %}",
    "{{ range(1000000) }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3) }}|{{ f() }}",
    "{% macro f(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{% set b = 5 %}{{ f() }}{{ f(2) }}",
    "{% set x = 1 %}{% macro f(a=x) %}{{ a }}{% endmacro %}{% set x = 2 %}{{ f() }}{% for x in [3] %}{{ f() }}{% endfor %}",
    "{% set a = 1 %}{% set b = 2 %}{% macro f(a=a, b=b) %}[{{ a }}{{ b }}]{% endmacro %}{{ f() }}{{ f(3) }}{{ f(b=4) }}",
    "{% macro f(a=b, b=1) %}[{{ a }}{{ b }}]{% endmacro %}{{ f(b=7) }}{{ f(8) }}",
    "{% macro f(a=1, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a, a=1) %}{{ a }}{% endmacro %}{{ f(1) }}",
    "{% macro f(a=[]) %}{{ a }}{% endmacro %}{{ f() }}{{ f(a=none) }}{{ f(nothing) }}",
    "{% macro f(a, b=a ~ '!', c=b * 2) %}{{ c }}{% endmacro %}{{ f('x') }}{{ f('x', c=1) }}{{ f('x', nothing) }}",
    "{% macro f(a=nothing.x) %}{{ a }}{% endmacro %}{{ f(1) }}{{ f() }}",
    "{% macro f(a=nothing) %}{{ a is defined }}{{ a }}{% endmacro %}{{ f() }}",
    "{% macro f(a, b=1) %}{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}{{ f.explicit_caller }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{{ caller }}{% endmacro %}{{ f.arguments }}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f.caller }}{{ f.explicit_caller }}",
    "{% macro f(a, b=1) %}{% endmacro %}{{ f['arguments'] | length }}{{ f.arguments is sequence }}{{ f.defaults is defined }}{{ f._argument_count is defined }}{{ f.zz is defined }}{{ f | attr('name') }}{{ f is callable }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f(a) %}{{ a }}{{ kwargs }}{% endmacro %}{{ f(1, a=2) }}",
    "{% macro f(caller=1) %}{{ caller }}{% endmacro %}{{ f.arguments }}{{ f.caller }}{{ f.explicit_caller }}{{ f() }}{{ f(2) }}{% call f() %}x{% endcall %}",
    "{% macro f() %}{{ g(caller=1, kwargs=2, varargs=3) if g }}{{ s.kwargs }}{% endmacro %}{{ f.caller }}{{ f.catch_kwargs }}{{ f.catch_varargs }}",
    "{% macro f() %}{% set kwargs = 1 %}{{ kwargs }}{{ varargs }}{% set varargs = 2 %}{% endmacro %}{{ f.catch_kwargs }}{{ f.catch_varargs }}{{ f() }}",
    "{% macro f() %}{% macro g(caller=1) %}{{ caller }}{% endmacro %}{{ g() }}{% endmacro %}{{ f.caller }}{{ f() }}",
    "{% macro f() %}{% block b %}{{ kwargs }}{% endblock %}{% endmacro %}{{ f.catch_kwargs }}",
    "{% macro f() %}[{{ caller }}{{ caller is defined }}]{% endmacro %}{{ f(caller=none) }}{{ f(caller=0) }}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(a=1, **{'b': 2}) }}{{ f(a=1, **{'a': 2}) }}",
    "{{ dict(a=1, a=2) }}",
    "{% macro f() %}{{ kwargs | list }}{% endmacro %}{% call f(a=1, **{'b': 2}) %}{% endcall %}",
    "{{ s | default('y', boolean=true, boolean=false) }}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% call f(caller=1) %}x{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% call f(**{'caller': 1}) %}x{% endcall %}",
    "{% macro f(a, b=kwargs) %}{{ a }}{{ b }}{{ kwargs }}{% endmacro %}{{ f(1, c=2) }}",
    "{% macro f(a=varargs, b=caller) %}{{ a }}{{ b }}{{ varargs }}{{ caller is defined }}{% endmacro %}{{ f() }}{{ f(1, 2, 3) }}",
    "{% macro f(caller=1, a=2) %}{{ caller }}{{ a }}{% endmacro %}{{ f(a=3) }}{{ f(1, 2) }}{{ f(1) }}",
    "{% macro f(caller) %}{{ caller }}{% endmacro %}",
    "{% macro f(a, caller=none) %}{{ a }}{{ caller }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}",
    "{% macro f(varargs) %}{{ varargs }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}",
    "{% macro f(kwargs=2) %}{{ kwargs }}{% endmacro %}{{ f() }}{{ f(a=1) }}",
    "{% macro f(a) %}{% endmacro %}[{{ f(1) }}]{% macro f(b) %}{{ b }}{% endmacro %}{{ f(b=2) }}{{ f(a=2) }}",
    "{% macro f(a=2**70) %}{{ a }}{% endmacro %}{{ f() }}{{ f(a=2**80) }}{{ f(2**-2) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro f(a, b=a.x) %}{{ b }}{% endmacro %}{{ f({'x': 1}) }}{{ f({}) }}|{{ f(1) }}",
    "{% macro f(a) %}{% set a = a ~ '!' %}{{ a }}{% endmacro %}{{ f('x') }}{{ a is defined }}",
    "{% call(a, b=2) dict %}{% endcall %}",
    "{% macro f() %}{{ caller(1) }}{{ caller(1, 2) }}{{ caller.arguments }}{{ caller.name }}{% endmacro %}{% call(a, b=a) f() %}<{{ a }}{{ b }}>{% endcall %}",
    "{{ 'a' 'b' }}{{ 'a\\x41\\u00e9\\n\\d\\'' }}{{ 1_000 }}{{ 0x1f }}{{ 1.5e3 }}{{ {'a': {'b': 1}}['a']['b'] }}{{ n.0 }}{{ [1, 2,] }}",
]

# Classes of differences between minijinja and Jinja2 (`crates/lm-jinja/tests/second_opinion`), with examples.
CLASSES = {
    "percent formatting": ["{{ '%s|%d' % ('a', 3) }}"],
    "filters that minijinja lacks": ["{{ 'a b' | wordcount }}"],
    "methods that minijinja lacks": ["{{ 'a\tb'.expandtabs(2) }}", "{{ 'a-b'.partition('-') }}"],
    "int and float of other values": ["{{ 'x' | int }}", "{{ [1] | int }}"],
    "iteration over none": ["{% for x in none %}{{ x }}{% endfor %}"],
    "unhashable values": ["{{ [{}, {}] | unique | list }}", "{{ {[1]: 2} }}"],
    "comparisons of values without an order": ["{{ {} < 'a' }}", "{{ [true, 'a'] | sort }}"],
    "empty separators": ["{{ 'ab'.split('') }}"],
    "joins of values other than text": ["{{ '-'.join([1, 2]) }}"],
    "lists after tests": ["{% if false %}{{ 1 is iterable if [1, 2] is iterable }}{% endif %}"],
    "floats as bounds of slices": ["{% set x = 'abc' %}{{ x[1.0:] }}"],
    "containment in text": ["{{ [1] in 'a' }}"],
    "JSON of undefined values and generators": ["{{ missing | tojson }}", "{{ ['a'] | map('upper') | tojson }}"],
    "sums of ranges and lists": ["{{ range(2) + [1] }}"],
    "chained tests": ["{{ 1 is number is true }}"],
    "operations on undefined values": ["{% set x = 'a' %}{{ x[3][::-1] }}"],
    "repr of undefined values": ["{{ [missing] }}"],
    "repr of ranges": ["{{ range(3) }}", "{{ range(4)[::2] }}"],
    "title case": ["{{ 'ßa'.title() }}", "{{ \"<a b='c'>\".title() }}"],
    "markup and escapes": ["{{ (\"/'\" | e) }}", "{{ [('<' | e)] }}", "{{ ('<' | safe) + '<' }}"],
    "last iteration over text": ["{% for c in 'ab' %}{{ c }}{% if not loop.last %}, {% endif %}{% endfor %})"],
    "exponents of floats": ["{{ 0.0000001 }}", "{{ [0.00001] | tojson }}"],
    "text, dicts and generators as sequences": ["{{ 'a' is sequence }}", "{{ {} is sequence }}"],
    "none as an iterable": ["{{ none is iterable }}", "{{ 'a' if none is iterable and none | length > 0 else 'b' }}"],
    "case of values other than text": ["{{ ['a'] is lower }}"],
    "indentation of an empty text": ["{{ '' | indent(2, true) }}"],
    "undefined values for names": ["{% macro m(q='d') %}{{ q }}{% endmacro %}{{ m(q=missing) }}"],
}


def rendered(source: str, context: dict[str, Any]) -> str | None:
    try:
        return _compile_jinja_template(source).render(**context, strftime_now=NOW.strftime)
    except Exception:  # noqa: BLE001: whatever it is, the template fails
        return None


def write(name: str, context: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    lines = [json.dumps(case, ensure_ascii=False) for case in cases]
    text = '{"context": ' + json.dumps(context, ensure_ascii=False) + ',\n"cases": [\n' + ",\n".join(lines) + "\n]}\n"
    (HERE / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    warnings.simplefilter("ignore")
    os.environ["TZ"] = "UTC"
    time.tzset()
    lines = EXPRESSIONS.strip().splitlines()
    expressions = [part.strip().replace("@", " | ") for line in lines for part in line.split(" | ")]
    sources = ["{{ " + expression + " }}" for expression in expressions] + TEMPLATES
    write("jinja.json", CONTEXT, [{"template": source, "text": rendered(source, CONTEXT)} for source in sources])
    examples = [(name, source) for name, sources in CLASSES.items() for source in sources]
    cases = [{"class": name, "template": source, "text": rendered(source, {})} for name, source in examples]
    write("minijinja.json", {}, cases)


if __name__ == "__main__":
    main()
