//! Writes the corpus of random programs.
//!
//! What it writes type-checks in both languages and always ends: loops count to at most 3, and integers
//! wrap. `log` gathers what was executed and in which order. To write another corpus, change what is
//! generated and run the test below with `LACEWING_WRITE_CORPUS=1`.

use std::fmt::Write;

use super::FUNCTIONS;

/// A small generator of pseudo-random numbers (xorshift64*): the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    /// True with a probability of `percent`.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// What a jump can go to.
#[derive(Clone)]
struct Target {
    label: String,
    /// `continue` is possible.
    is_loop: bool,
    /// `break` takes a value.
    valued: bool,
}

/// What is in scope.
#[derive(Clone, Default)]
struct Scope {
    /// Expressions of type `I32`.
    integers: Vec<String>,
    /// Places of type `I32` that can be assigned.
    places: Vec<String>,
    targets: Vec<Target>,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Perhaps with a jump.
    Jump,
    /// With a value of type `I32`.
    Value,
    /// As it comes: more code follows.
    Open,
}

struct Writer {
    random: Random,
    text: String,
    names: usize,
    /// Statements that may still be written under the current one of the function.
    fuel: usize,
    /// Functions that can be called: those before this one.
    callable: usize,
}

impl Writer {
    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "    ".repeat(depth));
    }

    fn expression(&mut self, scope: &Scope, deep: usize) -> String {
        let one = self.random.pick(&scope.integers);
        match self.random.below(9) {
            3 => format!("({one} + {})", self.random.below(10)),
            4 | 5 if deep < 3 => {
                let operator = self.random.pick(&["+", "-", "*", "^", "&", "|"]);
                let (left, right) = (self.expression(scope, deep + 1), self.expression(scope, deep + 1));
                format!("({left} {operator} {right})")
            }
            6 if deep < 2 => {
                let condition = self.condition(scope, 1);
                let (then, other) = (self.expression(scope, deep + 1), self.expression(scope, deep + 1));
                format!("(if {condition} {{ {then} }} else {{ {other} }})")
            }
            7 => format!("({one} * 3)"),
            _ => one,
        }
    }

    fn condition(&mut self, scope: &Scope, deep: usize) -> String {
        match self.random.below(6) {
            choice @ 0..=1 if deep < 2 => {
                let operator = ["&&", "||"][choice];
                let (left, right) = (self.condition(scope, deep + 1), self.condition(scope, deep + 1));
                format!("({left} {operator} {right})")
            }
            2 => format!("!({} & 1 == {})", self.random.pick(&scope.integers), self.random.below(2)),
            _ => {
                let operator = self.random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("{} {operator} {}", self.random.pick(&scope.integers), self.expression(scope, 2))
            }
        }
    }

    fn jump(&mut self, scope: &Scope) -> String {
        let mut choices = vec![format!("return {}", self.expression(scope, 1))];
        for target in &scope.targets {
            let Target { label, is_loop, valued } = target;
            let value = if *valued { format!(" {}", self.expression(scope, 1)) } else { String::new() };
            choices.push(format!("break '{label}{value}"));
            if *is_loop {
                choices.push(format!("continue '{label}"));
            }
        }
        if scope.targets.last().is_some_and(|target| target.is_loop && !target.valued) {
            choices.extend(["break".to_owned(), "continue".to_owned(), "continue".to_owned()]);
        }
        self.random.pick(&choices)
    }

    fn block(&mut self, outside: &Scope, depth: usize, end: End) {
        let mut scope = outside.clone();
        let statements = if depth == 1 { 4 + self.random.below(6) } else { 1 + self.random.below(3) };
        for _ in 0..statements {
            if depth == 1 {
                self.fuel = 2 + self.random.below(4);
            }
            if self.fuel == 0 || depth > 6 {
                break;
            }
            self.fuel -= 1;
            self.statement(&mut scope, depth);
        }
        match end {
            End::Value => {
                let value = self.expression(&scope, 0);
                self.line(depth, &value);
            }
            End::Jump if self.random.chance(35) => {
                let jump = self.jump(&scope);
                self.line(depth, &format!("{jump};"));
            }
            _ => {}
        }
    }

    /// A block inside braces: `head {` ... `}tail`.
    fn braces(&mut self, head: &str, scope: &Scope, depth: usize, end: End, tail: &str) {
        self.line(depth, &format!("{head} {{"));
        self.block(scope, depth + 1, end);
        self.line(depth, &format!("}}{tail}"));
    }

    fn inside(&mut self, scope: &Scope, target: Target, variable: Option<&str>) -> Scope {
        let mut inner = scope.clone();
        inner.targets.push(target);
        inner.integers.extend(variable.map(str::to_owned));
        inner
    }

    /// A counter for loops that count by hand: `let mut c = e & 3;`.
    fn counter(&mut self, scope: &Scope, depth: usize) -> String {
        let (counter, start) = (self.fresh("count"), self.expression(scope, 1));
        self.line(depth, &format!("let mut {counter} = {start} & 3;"));
        counter
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) {
        match self.random.below(32) {
            0..=1 => {
                let value = self.expression(scope, 0);
                self.line(depth, &format!("*log = *log * 31 + {value};"));
            }
            2..=3 => {
                let operator = self.random.pick(&["=", "+=", "-=", "^="]);
                let (place, value) = (self.random.pick(&scope.places), self.expression(scope, 0));
                self.line(depth, &format!("{place} {operator} {value};"));
            }
            4 => self.declare(scope, depth, "let mut"),
            5 => self.shadow(scope, depth),
            6 => {
                let (a, b) = (self.random.pick(&scope.places), self.random.pick(&scope.places));
                if a != b {
                    let value = self.expression(scope, 0);
                    self.line(depth, &format!("({a}, {b}) = ({value}, {a});"));
                }
            }
            7..=10 => {
                let condition = self.condition(scope, 0);
                let tail = if self.random.chance(50) { " else" } else { "" };
                self.braces(&format!("if {condition}"), scope, depth, End::Jump, tail);
                if !tail.is_empty() {
                    self.braces("", scope, depth, End::Jump, "");
                }
            }
            11 => self.first_value_in_arms(scope, depth),
            12 => self.value_or_jump(scope, depth),
            13..=15 => {
                let (variable, label) = (self.fresh("i"), self.fresh("each"));
                let (lo, hi) = (self.random.below(3), self.expression(scope, 1));
                let inner =
                    self.inside(scope, Target { label: label.clone(), is_loop: true, valued: false }, Some(&variable));
                self.braces(
                    &format!("'{label}: for {variable} in range({lo}, {hi} & 3)"),
                    &inner,
                    depth,
                    End::Jump,
                    "",
                );
            }
            16 => {
                let (counter, label) = (self.counter(scope, depth), self.fresh("during"));
                let more =
                    if self.random.chance(30) { format!(" && {}", self.condition(scope, 1)) } else { String::new() };
                let inner =
                    self.inside(scope, Target { label: label.clone(), is_loop: true, valued: false }, Some(&counter));
                self.line(depth, &format!("'{label}: while {counter} > 0{more} {{"));
                self.line(depth + 1, &format!("{counter} -= 1;"));
                self.block(&inner, depth + 1, End::Jump);
                self.line(depth, "}");
            }
            17 => self.endless(scope, depth, false),
            18 => self.endless(scope, depth, true),
            19..=20 => self.unrolled(scope, depth),
            21 => {
                let label = self.fresh("block");
                let inner = self.inside(scope, Target { label: label.clone(), is_loop: false, valued: false }, None);
                self.braces(&format!("'{label}:"), &inner, depth, End::Jump, "");
            }
            22 => {
                let (label, result) = (self.fresh("block"), self.fresh("value"));
                let inner = self.inside(scope, Target { label: label.clone(), is_loop: false, valued: true }, None);
                self.braces(&format!("let {result} = '{label}:"), &inner, depth, End::Value, ";");
                scope.integers.push(result);
            }
            23 => {
                let (some, known, value) = (self.fresh("some"), self.random.chance(70), self.expression(scope, 0));
                let jump = self.jump(scope);
                self.line(depth, &format!("let Some({some}) = some_if({known}, {value}) else {{"));
                self.line(depth + 1, "*log += 5;");
                self.line(depth + 1, &format!("{jump};"));
                self.line(depth, "};");
                scope.integers.push(some);
            }
            24 => {
                let known = self.random.chance(50);
                self.line(depth, &format!("match {known} {{"));
                self.braces("true =>", scope, depth + 1, End::Jump, "");
                self.braces("false =>", scope, depth + 1, End::Jump, "");
                self.line(depth, "}");
            }
            25 => {
                let array = self.fresh("array");
                let values: Vec<_> = (0..3).map(|_| self.expression(scope, 1)).collect();
                self.line(depth, &format!("let mut {array} = [{}];", values.join(", ")));
                self.both(scope, (0..3).map(|index| format!("{array}[{index}]")));
            }
            26 => {
                let pair = self.fresh("pair");
                let [a, b, c] = std::array::from_fn(|_| self.expression(scope, 1));
                self.line(depth, &format!("let mut {pair} = Pair {{ first: {a}, second: [{b}, {c}] }};"));
                self.both(scope, ["first", "second[0]", "second[1]"].map(|field| format!("{pair}.{field}")));
            }
            27 => {
                let tuple = self.fresh("tuple");
                let [a, b, c] = std::array::from_fn(|_| self.expression(scope, 1));
                self.line(depth, &format!("let mut {tuple} = ({a}, ({b}, {c}));"));
                self.both(scope, ["0", "1.0", "1.1"].map(|field| format!("{tuple}.{field}")));
            }
            28 => {
                // A reference to a part: what it is a part of is not named while it lives.
                let (reference, place) = (self.fresh("part"), self.random.pick(&scope.places));
                let mut inner = scope.clone();
                for names in [&mut inner.integers, &mut inner.places] {
                    names.retain(|name| root(name) != root(&place));
                }
                self.both(&mut inner, [format!("(*{reference})")]);
                self.line(depth, "{");
                self.line(depth + 1, &format!("let {reference} = &mut {place};"));
                self.block(&inner, depth + 1, End::Open);
                let value = self.expression(&inner, 1);
                self.line(depth + 1, &format!("*{reference} += {value};"));
                self.line(depth, "}");
            }
            29..=30 if self.callable > 0 && depth < 3 => {
                let (result, callee) = (self.fresh("call"), self.random.below(self.callable));
                let (a, b) = (self.expression(scope, 1), self.expression(scope, 1));
                self.line(depth, &format!("let {result} = f{callee}({a}, {b}, log);"));
                scope.integers.push(result);
                self.callable = 0;
            }
            _ => self.first_value_in_block(scope, depth),
        }
    }

    fn both(&mut self, scope: &mut Scope, names: impl IntoIterator<Item = String>) {
        for name in names {
            scope.integers.push(name.clone());
            scope.places.push(name);
        }
    }

    fn declare(&mut self, scope: &mut Scope, depth: usize, how: &str) {
        let (variable, value) = (self.fresh("v"), self.expression(scope, 0));
        self.line(depth, &format!("{how} {variable} = {value};"));
        self.both(scope, [variable]);
    }

    /// A second binding of a name that exists.
    fn shadow(&mut self, scope: &mut Scope, depth: usize) {
        let name = self.random.pick(&scope.integers);
        if name.chars().all(char::is_alphanumeric) {
            let value = self.expression(scope, 0);
            self.line(depth, &format!("let mut {name} = {value};"));
            if !scope.places.contains(&name) {
                scope.places.push(name);
            }
        }
    }

    fn first_value_in_arms(&mut self, scope: &mut Scope, depth: usize) {
        let (variable, condition) = (self.fresh("first"), self.condition(scope, 0));
        let mutable = self.random.pick(&["", "mut "]);
        self.line(depth, &format!("let {mutable}{variable};"));
        for head in [format!("if {condition} {{"), "} else {".to_owned()] {
            self.line(depth, &head);
            self.block(scope, depth + 1, End::Open);
            let value = self.expression(scope, 0);
            self.line(depth + 1, &format!("{variable} = {value};"));
        }
        self.line(depth, "}");
        scope.integers.push(variable);
    }

    fn first_value_in_block(&mut self, scope: &mut Scope, depth: usize) {
        let variable = self.fresh("first");
        self.line(depth, &format!("let {variable};"));
        self.line(depth, "{");
        self.block(scope, depth + 1, End::Open);
        let value = self.expression(scope, 0);
        self.line(depth + 1, &format!("{variable} = {value};"));
        self.line(depth, "}");
        scope.integers.push(variable);
    }

    fn value_or_jump(&mut self, scope: &mut Scope, depth: usize) {
        let (condition, value, jump) = (self.condition(scope, 0), self.expression(scope, 0), self.jump(scope));
        let value = format!("if {condition} {{ {value} }} else {{ {jump} }};");
        match self.random.below(2) {
            0 => {
                let variable = self.fresh("or");
                self.line(depth, &format!("let {variable} = {value}"));
                scope.integers.push(variable);
            }
            _ => {
                let (place, operator) = (self.random.pick(&scope.places), self.random.pick(&["=", "+="]));
                self.line(depth, &format!("{place} {operator} {value}"));
            }
        }
    }

    /// `loop`, with a value or without.
    fn endless(&mut self, scope: &mut Scope, depth: usize, valued: bool) {
        let (counter, label, result) = (self.counter(scope, depth), self.fresh("again"), self.fresh("value"));
        let inner = self.inside(scope, Target { label: label.clone(), is_loop: true, valued }, Some(&counter));
        let (head, tail) = if valued { (format!("let {result} = "), ";") } else { (String::new(), "") };
        let value = if valued { format!(" {}", self.expression(&inner, 1)) } else { String::new() };
        self.line(depth, &format!("{head}'{label}: loop {{"));
        self.line(depth + 1, &format!("{counter} -= 1;"));
        self.line(depth + 1, &format!("if {counter} < 0 {{"));
        self.line(depth + 2, &format!("break{value};"));
        self.line(depth + 1, "}");
        self.block(&inner, depth + 1, End::Jump);
        self.line(depth, &format!("}}{tail}"));
        if valued {
            scope.integers.push(result);
        }
    }

    /// A compile-time loop, with jumps that are decided when tracing and jumps that are not.
    fn unrolled(&mut self, scope: &Scope, depth: usize) {
        let (pass, label, passes) = (self.fresh("pass"), self.fresh("unrolled"), 1 + self.random.below(3));
        let inner = self.inside(scope, Target { label: label.clone(), is_loop: true, valued: false }, None);
        let place = self.random.pick(&scope.places);
        self.line(depth, &format!("'{label}: for {pass} in range_constexpr({passes}) {{"));
        self.line(depth + 1, &format!("{place} += WEIGHTS[{pass}];"));
        if self.random.chance(60) {
            self.line(depth + 1, &format!("if const_expr({pass} == 1) {{"));
            self.line(depth + 2, "*log = *log * 31 + 7;");
            if self.random.chance(60) {
                let jump = self.jump(&inner);
                self.line(depth + 2, &format!("{jump};"));
            }
            self.line(depth + 1, "}");
        }
        self.block(&inner, depth + 1, End::Jump);
        self.line(depth, "}");
    }
}

/// The variable at the root of a place.
fn root(place: &str) -> &str {
    place.split(['.', '[']).next().unwrap_or(place)
}

fn corpus() -> String {
    let mut text = String::from("// Written by `generate.rs`.\n\ncorpus! {\n");
    for function in 0..FUNCTIONS[0] {
        let seed = 2 * function as u64 + 4711;
        let mut writer = Writer { random: Random(seed), text: String::new(), names: 0, fuel: 0, callable: function };
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..20 {
            writer.random.below(2);
        }
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let scope = Scope { integers: names.clone(), places: names, targets: Vec::new() };
        writer.block(&scope, 1, End::Value);
        let _ = write!(text, "fn f{function}(mut a: I32, mut b: I32, log: &mut I32) -> I32 {{\n{}}}\n\n", writer.text);
    }
    text + "}\n"
}

#[test]
fn the_corpus_is_what_the_generator_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/differential/corpus.rs");
    let text = corpus();
    if std::env::var_os("LACEWING_WRITE_CORPUS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == text, "the corpus is another: see the text above");
}
