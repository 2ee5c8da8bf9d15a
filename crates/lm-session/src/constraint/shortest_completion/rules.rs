//! Rules of a compiled grammar, with the cheapest expansion of each symbol.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use llguidance::earley::lexerspec::LexemeIdx;
use llguidance::earley::{CGrammar, CSymIdx};

/// Index of a symbol.
pub(super) type Symbol = u32;
/// Index of a dot position in a rule: before one of its symbols, or at its end.
pub(super) type DotPosition = u32;
/// Estimated number of tokens.
pub(super) type Cost = u64;

/// Cost of a symbol without finite text.
pub(super) const INFINITE_COST: Cost = Cost::MAX;
/// Maximum number of dot positions of a supported grammar.
const MAX_POSITIONS: usize = 2_000_000;

#[derive(Debug)]
pub(super) struct Rules {
    pub start: Symbol,
    symbols: Vec<SymbolRules>,
    positions: Vec<DottedRule>,
}

#[derive(Debug, Default)]
struct SymbolRules {
    /// The lexeme of a terminal.
    lexeme: Option<LexemeIdx>,
    /// Terminal that may precede it, such as whitespace that the grammar ignores.
    skip: Option<Symbol>,
    nullable: bool,
    /// First position of each rule.
    rules: Vec<DotPosition>,
    cost: Cost,
    /// The cheapest rule; `None` for terminals, and if the empty text is the cheapest.
    cheapest: Option<DotPosition>,
}

#[derive(Debug)]
struct DottedRule {
    /// Symbol after the dot; `None` at the end of the rule.
    next: Option<Symbol>,
    /// Left-hand side of the rule.
    lhs: Symbol,
    /// Cost of all symbols after the dot.
    rest_cost: Cost,
}

impl Rules {
    /// Approximate bytes of memory, including the library's own rules.
    pub fn bytes(&self) -> usize {
        const COPIES: usize = 2;
        let rules: usize = self.symbols.iter().map(|symbol| size_of_val(&*symbol.rules)).sum();
        COPIES * (rules + size_of_val(&*self.symbols) + size_of_val(&*self.positions))
    }

    /// Reads the rules reachable from the grammar's start symbol; `None` when they have conditions, or there
    /// are too many.
    pub fn from_grammar(grammar: &CGrammar) -> Option<Self> {
        if grammar.parametric() {
            return None;
        }
        let mut reader = Reader::new(grammar);
        let start = reader.symbol(grammar.start());
        while let Some(next) = reader.unread.pop() {
            reader.read(next);
            if reader.rules.positions.len() > MAX_POSITIONS {
                return None;
            }
        }
        Some(Self { start, ..reader.rules })
    }

    /// Terminals with their lexemes.
    pub fn terminals(&self) -> impl Iterator<Item = (Symbol, LexemeIdx)> + '_ {
        let lexeme = |(symbol, rules): (usize, &SymbolRules)| Some((symbol as Symbol, rules.lexeme?));
        self.symbols.iter().enumerate().filter_map(lexeme)
    }

    pub fn lexeme(&self, symbol: Symbol) -> Option<LexemeIdx> {
        self.symbols[symbol as usize].lexeme
    }

    pub fn is_terminal(&self, symbol: Symbol) -> bool {
        self.symbols[symbol as usize].lexeme.is_some()
    }

    /// Terminal that may precede a terminal.
    pub fn skip(&self, symbol: Symbol) -> Option<Symbol> {
        self.symbols[symbol as usize].skip
    }

    pub fn is_nullable(&self, symbol: Symbol) -> bool {
        self.symbols[symbol as usize].nullable
    }

    /// First position of each rule of a symbol.
    pub fn rules(&self, symbol: Symbol) -> &[DotPosition] {
        &self.symbols[symbol as usize].rules
    }

    pub fn next(&self, dot: DotPosition) -> Option<Symbol> {
        self.positions[dot as usize].next
    }

    pub fn lhs(&self, dot: DotPosition) -> Symbol {
        self.positions[dot as usize].lhs
    }

    /// Cost of the symbols after the dot.
    pub fn rest_cost(&self, dot: DotPosition) -> Cost {
        self.positions[dot as usize].rest_cost
    }

    /// Terminals of the cheapest text after `dot` in its rule.
    pub fn cheapest_rest(&self, dot: DotPosition) -> Vec<Symbol> {
        let (mut terminals, mut open) = (Vec::new(), vec![dot]);
        while let Some(dot) = open.pop() {
            let Some(next) = self.next(dot) else { continue };
            open.push(dot + 1);
            if self.is_terminal(next) {
                terminals.push(next);
            } else {
                open.extend(self.symbols[next as usize].cheapest);
            }
        }
        terminals
    }

    /// Computes the costs of all symbols and positions from those of the terminals, in increasing order
    /// (Knuth's generalization of Dijkstra's algorithm).
    pub fn set_costs(&mut self, terminal: impl Fn(Symbol) -> Cost) {
        let rules: Vec<DotPosition> =
            self.symbols.iter().flat_map(|symbol| symbol.rules.iter().copied()).collect();
        let mut open: Vec<(usize, Cost)> = Vec::with_capacity(rules.len());
        let mut occurrences: HashMap<Symbol, Vec<usize>> = HashMap::new();
        for (rule, &first) in rules.iter().enumerate() {
            let symbols: Vec<Symbol> = (first..).map_while(|dot| self.next(dot)).collect();
            open.push((symbols.len(), 0));
            symbols.into_iter().for_each(|symbol| occurrences.entry(symbol).or_default().push(rule));
        }
        let mut heap: BinaryHeap<Reverse<(Cost, Symbol, Option<DotPosition>)>> = BinaryHeap::new();
        for (symbol, rules) in self.symbols.iter().enumerate() {
            let symbol = symbol as Symbol;
            let cost = if rules.lexeme.is_some() { terminal(symbol) } else { 0 };
            if (rules.lexeme.is_some() || rules.nullable) && cost != INFINITE_COST {
                heap.push(Reverse((cost, symbol, None)));
            }
        }
        while let Some(Reverse((cost, symbol, rule))) = heap.pop() {
            let settled = &mut self.symbols[symbol as usize];
            if settled.cost != INFINITE_COST {
                continue;
            }
            (settled.cost, settled.cheapest) = (cost, rule);
            for &rule in occurrences.get(&symbol).into_iter().flatten() {
                let (left, sum) = &mut open[rule];
                (*left, *sum) = (*left - 1, sum.saturating_add(cost));
                if *left == 0 {
                    heap.push(Reverse((*sum, self.lhs(rules[rule]), Some(rules[rule]))));
                }
            }
        }
        for dot in (0..self.positions.len()).rev() {
            self.positions[dot].rest_cost = match self.positions[dot].next {
                Some(next) => {
                    self.symbols[next as usize].cost.saturating_add(self.positions[dot + 1].rest_cost)
                }
                None => 0,
            };
        }
    }
}

/// Reads the rules of a grammar, symbol by symbol.
struct Reader<'a> {
    grammar: &'a CGrammar,
    rules: Rules,
    known: HashMap<CSymIdx, Symbol>,
    /// Terminals by lexeme: symbols of one lexeme are merged.
    terminals: HashMap<LexemeIdx, Symbol>,
    unread: Vec<CSymIdx>,
}

impl<'a> Reader<'a> {
    fn new(grammar: &'a CGrammar) -> Self {
        let rules = Rules { start: 0, symbols: Vec::new(), positions: Vec::new() };
        let (known, terminals) = (HashMap::new(), HashMap::new());
        Self { grammar, rules, known, terminals, unread: Vec::new() }
    }

    fn symbol(&mut self, index: CSymIdx) -> Symbol {
        if let Some(&known) = self.known.get(&index) {
            return known;
        }
        let data = self.grammar.sym_data(index);
        let symbol = match data.lexeme {
            Some(lexeme) => {
                let class = self.grammar.lexer_spec().lexeme_spec(lexeme).class();
                let skip = self.terminal(self.grammar.lexer_spec().skip_id(class));
                let symbol = self.terminal(lexeme);
                self.rules.symbols[symbol as usize].skip = Some(skip);
                symbol
            }
            None => {
                self.unread.push(index);
                self.add(SymbolRules { nullable: data.is_nullable, ..SymbolRules::default() })
            }
        };
        self.known.insert(index, symbol);
        symbol
    }

    fn terminal(&mut self, lexeme: LexemeIdx) -> Symbol {
        if let Some(&known) = self.terminals.get(&lexeme) {
            return known;
        }
        let symbol = self.add(SymbolRules { lexeme: Some(lexeme), ..SymbolRules::default() });
        self.terminals.insert(lexeme, symbol);
        symbol
    }

    fn add(&mut self, rules: SymbolRules) -> Symbol {
        self.rules.symbols.push(SymbolRules { cost: INFINITE_COST, ..rules });
        self.rules.symbols.len() as Symbol - 1
    }

    /// Reads the rules of `index`.
    fn read(&mut self, index: CSymIdx) {
        let lhs = self.symbol(index);
        for &rule in self.grammar.rules_of(index) {
            let (symbols, _, _) = self.grammar.rule_rhs(rule);
            let first = self.rules.positions.len() as DotPosition;
            let symbols: Vec<Option<Symbol>> =
                symbols.iter().map(|&symbol| Some(self.symbol(symbol))).collect();
            let positions = symbols.into_iter().chain([None]);
            self.rules.positions.extend(positions.map(|next| DottedRule {
                next,
                lhs,
                rest_cost: INFINITE_COST,
            }));
            self.rules.symbols[lhs as usize].rules.push(first);
        }
    }
}
