//! Random and damaged kernels: the expansion never panics, and what it gives always parses.

use std::fmt::Write;

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use super::root;
use crate::{carried, device, kernel, shared};

/// A small generator of pseudo-random numbers (xorshift64*): the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

/// Writes random bodies. They parse; whether they mean something is not asked.
struct Writer {
    random: Random,
    text: String,
    /// Names of the labels around.
    labels: Vec<String>,
    fuel: usize,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Writer { random: Random(seed * 2 + 1), text: String::new(), labels: Vec::new(), fuel: 40 }
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn name(&mut self) {
        let name = self.random.pick(&["a", "b", "c", "self.x", "arr[0]", "arr[i]", "s.f.g", "*r", "r#type"]);
        self.put(name);
    }

    fn spend(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.fuel > 0
    }

    fn expr(&mut self) {
        if !self.spend() {
            return self.put("a");
        }
        match self.random.below(24) {
            0..=4 => self.name(),
            5 => self.put("2.0"),
            6 => self.put("-1"),
            7..=9 => {
                self.put("(");
                self.expr();
                let op = self.random.pick(&[
                    "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||",
                ]);
                self.put(op);
                self.expr();
                self.put(")");
            }
            10 => {
                let function = self.random.pick(&["f(", "range(", "const_expr(", "g.h(", "range_constexpr(", "a.max("]);
                self.put(function);
                self.expr();
                self.put(",");
                self.expr();
                self.put(")");
            }
            11 => {
                let mac = self.random.pick(&["printf!(\"{}\",", "user!(", "assert!(", "vec!["]);
                self.put(mac);
                self.expr();
                self.put(if mac.ends_with('[') { "; 3]" } else { ")" });
            }
            12 => {
                self.put("(|a: F32, mut z| ");
                self.expr();
                self.put(")");
            }
            13 | 14 => self.branch(true),
            15 => {
                self.put("match m { M::A => ");
                self.expr();
                self.put(", Some(k) if k < 3 => ");
                self.block();
                self.put(" _ => ");
                self.expr();
                self.put("}");
            }
            16 => self.block(),
            17 => self.jump(),
            18 => {
                self.put("&mut ");
                self.name();
            }
            19 => {
                self.put("S { x: ");
                self.expr();
                self.put(", ..s }");
            }
            20 => self.labelled("", true),
            21 => {
                self.put("loop ");
                self.block();
            }
            22 => self.put("x?"),
            _ => {
                self.put("[");
                self.expr();
                self.put(", b]");
            }
        }
    }

    fn condition(&mut self) {
        match self.random.below(6) {
            0 => self.put("const_expr(k == 3)"),
            1 => self.put("let Some(mut a) = o"),
            2 => self.put("let Some(c) = o && const_expr(c)"),
            3 => self.put("a < 3 && (b > 2.0 || d)"),
            _ => {
                self.put("(");
                self.expr();
                self.put(")");
            }
        }
    }

    fn branch(&mut self, with_else: bool) {
        self.put("if ");
        self.condition();
        self.block();
        if with_else || self.random.below(2) == 0 {
            self.put(" else ");
            if self.random.below(3) == 0 { self.branch(true) } else { self.block() }
        }
    }

    fn jump(&mut self) {
        let label = match self.labels.is_empty() || self.random.below(2) == 0 {
            true => String::new(),
            false => format!(" '{}", self.labels[self.random.below(self.labels.len())]),
        };
        match self.random.below(5) {
            0 => self.put(&format!("return {}", self.random.0 % 9)),
            1 => self.put("return"),
            2 => self.put(&format!("break{label} 7")),
            3 => self.put(&format!("continue{label}")),
            _ => self.put(&format!("break{label}")),
        }
    }

    fn labelled(&mut self, head: &str, block: bool) {
        let label = format!("l{}", self.labels.len());
        if block || self.random.below(3) == 0 {
            self.put(&format!("'{label}: "));
        }
        self.labels.push(label);
        self.put(head);
        self.block();
        self.labels.pop();
    }

    fn block(&mut self) {
        self.put("{");
        for _ in 0..self.random.below(4) {
            self.statement();
        }
        match self.random.below(3) {
            0 => self.expr(),
            1 => {
                self.jump();
                self.put(";");
            }
            _ => {}
        }
        self.put("}");
    }

    fn statement(&mut self) {
        if !self.spend() {
            return;
        }
        match self.random.below(16) {
            0 => self.put("let y; let mut a;"),
            1 | 2 => {
                let pattern = self.random.pick(&[
                    "let mut a",
                    "let b",
                    "let (a, mut b)",
                    "let S { ref mut x, .. }",
                    "let c: F32",
                ]);
                self.put(pattern);
                self.put("=");
                self.expr();
                self.put(";");
            }
            3 => {
                self.put("let Some(mut a) = o else ");
                self.block();
                self.put(";");
            }
            4 | 5 => {
                let target = self.random.pick(&["y", "a", "(a, y)", "arr[i]", "s.x", "*r", "S { x: b, .. }"]);
                self.put(target);
                self.put("=");
                self.expr();
                self.put(";");
            }
            6 | 7 => {
                let target = self.random.pick(&["a += ", "b *= ", "arr[0] -= ", "self.x |= "]);
                self.put(target);
                self.expr();
                self.put(";");
            }
            8 | 9 => self.branch(false),
            10 => self.labelled("for i in range(a, 3).unroll(2) ", false),
            11 => self.labelled("for (i, mut b) in constexpr(arr.iter_mut().enumerate()) ", false),
            12 => self.labelled("while a < 3 ", false),
            13 => self.labelled("while let Some(a) = s.pop() ", false),
            14 => self.labelled("loop ", false),
            _ => {
                self.expr();
                self.put(";");
            }
        }
    }
}

fn random_function(seed: u64) -> String {
    let mut writer = Writer::new(seed);
    let output = writer.random.pick(&["", "-> F32", "-> impl Float", "-> &mut F32"]);
    let receiver = writer.random.pick(&["", "&mut self, ", "self, "]);
    let mut head = String::new();
    let _ = write!(head, "fn f({receiver}mut a: F32, r: &mut F32, (b, mut c): (I32, I32), #[comptime] m: M) {output}");
    writer.put(&head);
    writer.block();
    writer.text
}

/// The expansions of one item by every macro; each has to parse.
fn expand_all(item: &TokenStream) {
    let arguments = quote!(block = [1]);
    for kernel_like in [true, false] {
        let expanded = match kernel_like {
            true => kernel::expand(arguments.clone(), item.clone(), &root()),
            false => device::expand(TokenStream::new(), item.clone(), &root()),
        };
        let whole = if syn::parse2::<syn::ImplItemFn>(item.clone()).is_ok() { expanded } else { continue };
        let parsed = match kernel_like {
            true => syn::parse2::<syn::File>(whole.clone()).map(drop),
            false => syn::parse2::<syn::ItemImpl>(quote!(impl S { #whole })).map(drop),
        };
        if let Err(error) = parsed {
            panic!("the expansion of\n{item}\ndoes not parse: {error}\n{whole}");
        }
    }
    let _ = carried::expand(item.clone(), &root());
    let _ = shared::expand(item.clone(), &root());
}

#[test]
fn random_bodies_expand_to_code_that_parses() {
    let mut parsed = 0;
    for seed in 1..300 {
        let text = random_function(seed);
        if let Ok(item) = text.parse::<TokenStream>() {
            parsed += usize::from(syn::parse2::<syn::ImplItemFn>(item.clone()).is_ok());
            expand_all(&item);
        }
    }
    // The generator is of use only while most of what it writes is Rust.
    assert!(parsed > 200, "{parsed}");
}

/// One token of `tokens` dropped, doubled, or put elsewhere.
fn damaged(tokens: TokenStream, random: &mut Random) -> TokenStream {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    if trees.is_empty() {
        return TokenStream::new();
    }
    let at = random.below(trees.len());
    if let TokenTree::Group(group) = &trees[at]
        && random.below(4) != 0
    {
        let inner = damaged(group.stream(), random);
        trees[at] = TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner));
        return trees.into_iter().collect();
    }
    match random.below(3) {
        0 => drop(trees.remove(at)),
        1 => trees.insert(at, trees[random.below(trees.len())].clone()),
        _ => {
            let other = random.below(trees.len());
            trees.swap(at, other);
        }
    }
    trees.into_iter().collect()
}

#[test]
fn damaged_kernels_do_not_break_the_expansion() {
    let mut random = Random(77);
    for seed in 1..120 {
        let Ok(mut item) = random_function(seed).parse::<TokenStream>() else { continue };
        for _ in 0..4 {
            item = damaged(item, &mut random);
            expand_all(&item);
        }
    }
}
