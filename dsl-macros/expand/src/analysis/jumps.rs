//! Jumps: `break`, `continue`, `return`, and whether run-time control flow stands in their way.
//!
//! A jump that crosses a run-time frame on its way to its target cannot be a jump of the trace, which
//! passes each place once: it is *flagged*, it sets a variable, and what follows is guarded by it. Any
//! other jump is a decision of compile time and stays as it was written.

use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{
    Block, Expr, ExprBlock, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprIf, ExprLoop, ExprReturn, ExprWhile,
    Item, Label, Lifetime, Macro, Stmt,
};

use super::effects::{idents_in, place_root};
use super::marks::{is_compile_time_condition, is_compile_time_iterator, peel};

/// Identifies a loop or a labelled block of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoopId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JumpKind {
    Break(LoopId),
    Continue(LoopId),
    Return,
}

/// A flagged jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub kind: JumpKind,
    /// Whether it carries a value to its target.
    pub valued: bool,
}

/// What encloses a piece of code, as far as jumps are concerned.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// The body of a function or of a closure.
    Body {
        closure: bool,
    },
    /// A branch of a run-time `if`, or code under a guard.
    Runtime,
    Loop {
        id: LoopId,
        label: Option<String>,
        runtime: bool,
        valued: bool,
    },
    /// A labelled block.
    Block {
        id: LoopId,
        label: String,
    },
}

/// The syntax of a jump.
#[derive(Clone, Copy)]
pub(crate) enum JumpSyntax<'a> {
    Break(Option<&'a Lifetime>),
    Continue(Option<&'a Lifetime>),
    Return,
}

/// Where a jump goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Index of the target's frame.
    pub frame: usize,
    pub kind: JumpKind,
    pub flagged: bool,
}

/// Resolves a jump against `frames`, innermost last. `None`: no such target; rustc will say so.
pub(crate) fn resolve(frames: &[Frame], jump: JumpSyntax) -> Option<Target> {
    let mut flagged = false;
    for (frame, enclosing) in frames.iter().enumerate().rev() {
        let target = |kind, flagged| Some(Target { frame, kind, flagged });
        match (enclosing, jump) {
            (Frame::Runtime, _) => flagged = true,
            (Frame::Body { .. }, JumpSyntax::Return) => return target(JumpKind::Return, flagged),
            (Frame::Body { .. }, _) => return None,
            (Frame::Loop { id, label, runtime, .. }, _) => {
                flagged |= runtime;
                let hit = |wanted: Option<&Lifetime>| wanted.is_none_or(|name| is_named(name, label.as_deref()));
                match jump {
                    JumpSyntax::Break(name) if hit(name) => {
                        return target(JumpKind::Break(*id), flagged);
                    }
                    JumpSyntax::Continue(name) if hit(name) => {
                        return target(JumpKind::Continue(*id), flagged);
                    }
                    _ => {}
                }
            }
            (Frame::Block { id, label }, JumpSyntax::Break(Some(name))) if is_named(name, Some(label)) => {
                return target(JumpKind::Break(*id), flagged);
            }
            (Frame::Block { .. }, _) => {}
        }
    }
    None
}

fn is_named(name: &Lifetime, label: Option<&str>) -> bool {
    label.is_some_and(|label| name.ident == label)
}

/// The name of a label, without its quote.
pub(crate) fn label_name(label: Option<&Label>) -> Option<String> {
    label.map(|label| label.name.ident.to_string())
}

/// The jumps of a piece of code that leave it, found ahead of its lowering.
pub(crate) struct Scan {
    frames: Vec<Frame>,
    base: usize,
    host: bool,
    /// Whether some jump in the code is flagged, be it one that stays inside. What follows it is then
    /// under a guard, so that any other jump may come to be flagged, too.
    pub flagged: bool,
    /// The jumps that leave.
    pub found: Vec<JumpKind>,
}

impl Scan {
    /// A scan of code inside of `frames`. `host`: nothing in it is run-time control flow.
    pub fn new(frames: &[Frame], host: bool) -> Self {
        Scan { frames: frames.to_vec(), base: frames.len(), host, flagged: false, found: Vec::new() }
    }

    /// Whether a flagged jump may leave the code. A needless yes costs nothing but a guard that folds.
    pub fn escapes(&self) -> bool {
        self.flagged && !self.found.is_empty()
    }

    fn jump(&mut self, jump: JumpSyntax) {
        let Some(target) = resolve(&self.frames, jump) else {
            return;
        };
        self.flagged |= target.flagged;
        if target.frame < self.base {
            self.found.push(target.kind);
        }
    }

    fn within(&mut self, frame: Frame, visit: impl FnOnce(&mut Self)) {
        self.frames.push(frame);
        visit(self);
        self.frames.pop();
    }

    fn within_loop(&mut self, label: Option<&Label>, runtime: bool, body: &Block) {
        let id = LoopId(u32::MAX);
        let runtime = runtime && !self.host;
        let frame = Frame::Loop { id, label: label_name(label), runtime, valued: false };
        self.within(frame, |scan| scan.visit_block(body));
    }
}

impl<'a> Visit<'a> for Scan {
    fn visit_expr_break(&mut self, jump: &'a ExprBreak) {
        self.jump(JumpSyntax::Break(jump.label.as_ref()));
        visit::visit_expr_break(self, jump);
    }
    fn visit_expr_continue(&mut self, jump: &'a ExprContinue) {
        self.jump(JumpSyntax::Continue(jump.label.as_ref()));
    }
    fn visit_expr_return(&mut self, jump: &'a ExprReturn) {
        self.jump(JumpSyntax::Return);
        visit::visit_expr_return(self, jump);
    }
    fn visit_expr_if(&mut self, branch: &'a ExprIf) {
        self.visit_expr(&branch.cond);
        let runtime = !self.host && !is_compile_time_condition(&branch.cond);
        if runtime {
            self.frames.push(Frame::Runtime);
        }
        self.visit_block(&branch.then_branch);
        if let Some((_, other)) = &branch.else_branch {
            self.visit_expr(other);
        }
        if runtime {
            self.frames.pop();
        }
    }
    fn visit_expr_for_loop(&mut self, each: &'a ExprForLoop) {
        self.visit_expr(&each.expr);
        self.within_loop(each.label.as_ref(), !is_compile_time_iterator(&each.expr), &each.body);
    }
    fn visit_expr_while(&mut self, each: &'a ExprWhile) {
        self.within_loop(each.label.as_ref(), !is_compile_time_condition(&each.cond), &each.body);
    }
    fn visit_expr_loop(&mut self, each: &'a ExprLoop) {
        self.within_loop(each.label.as_ref(), true, &each.body);
    }
    fn visit_expr_block(&mut self, block: &'a ExprBlock) {
        match label_name(block.label.as_ref()) {
            Some(label) => {
                let id = LoopId(u32::MAX);
                self.within(Frame::Block { id, label }, |scan| scan.visit_block(&block.block));
            }
            None => self.visit_block(&block.block),
        }
    }
    fn visit_expr_closure(&mut self, _: &'a ExprClosure) {}
    fn visit_item(&mut self, _: &'a Item) {}
}

/// Whether control never reaches the end of `block`, as far as the text shows.
pub(crate) fn block_diverges(block: &Block) -> bool {
    block.stmts.iter().any(|statement| match statement {
        Stmt::Expr(expr, _) => diverges(expr),
        _ => false,
    })
}

/// Whether control never passes `expr`.
pub(crate) fn diverges(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Block(block) => block.label.is_none() && block_diverges(&block.block),
        Expr::Unsafe(block) => block_diverges(&block.block),
        Expr::If(branch) => match &branch.else_branch {
            Some((_, other)) => block_diverges(&branch.then_branch) && diverges(other),
            None => false,
        },
        Expr::Match(choice) => !choice.arms.is_empty() && choice.arms.iter().all(|arm| diverges(&arm.body)),
        Expr::Loop(each) => !has_break(each),
        _ => false,
    }
}

/// Whether some `break` leaves the loop `each`.
pub(crate) fn has_break(each: &ExprLoop) -> bool {
    let id = LoopId(0);
    let label = label_name(each.label.as_ref());
    let frames = [Frame::Body { closure: false }, Frame::Loop { id, label, runtime: true, valued: false }];
    let mut scan = Scan::new(&frames, false);
    scan.visit_block(&each.body);
    scan.found.contains(&JumpKind::Break(id))
}

/// Whether `block` assigns the whole of `name` on every path that leaves it at its end.
pub(crate) fn assigns_always(block: &Block, name: &Ident) -> bool {
    block.stmts.iter().any(|statement| match statement {
        Stmt::Expr(expr, _) => expr_assigns_always(expr, name),
        _ => false,
    })
}

fn expr_assigns_always(expr: &Expr, name: &Ident) -> bool {
    match peel(expr) {
        Expr::Assign(assign) => assigned_names(&assign.left).contains(&name),
        Expr::Block(block) => block.label.is_none() && assigns_always(&block.block, name),
        Expr::Unsafe(block) => assigns_always(&block.block, name),
        Expr::If(branch) => {
            let assigns = |block| block_diverges(block) || assigns_always(block, name);
            assigns(&branch.then_branch)
                && branch
                    .else_branch
                    .as_ref()
                    .is_some_and(|(_, other)| diverges(other) || expr_assigns_always(other, name))
        }
        Expr::Match(choice) => {
            let assigns = |body: &Expr| diverges(body) || expr_assigns_always(body, name);
            !choice.arms.is_empty() && choice.arms.iter().all(|arm| assigns(&arm.body))
        }
        _ => false,
    }
}

/// The variables that an assignment to `place` sets as a whole.
pub(crate) fn assigned_names(place: &Expr) -> Vec<&Ident> {
    match peel(place) {
        Expr::Tuple(tuple) => tuple.elems.iter().flat_map(assigned_names).collect(),
        Expr::Array(array) => array.elems.iter().flat_map(assigned_names).collect(),
        Expr::Struct(item) => item.fields.iter().flat_map(|field| assigned_names(&field.expr)).collect(),
        Expr::Call(call) => call.args.iter().flat_map(assigned_names).collect(),
        other => match place_root(other) {
            Some((ident, true)) => vec![ident],
            _ => Vec::new(),
        },
    }
}

/// Whether `name` occurs in `block`, be it in the tokens of a macro.
pub(crate) fn mentions(block: &Block, name: &Ident) -> bool {
    struct Search<'s> {
        name: &'s Ident,
        found: bool,
    }
    impl<'a> Visit<'a> for Search<'_> {
        fn visit_ident(&mut self, ident: &'a Ident) {
            self.found |= ident == self.name;
        }
        fn visit_macro(&mut self, mac: &'a Macro) {
            let mut idents = Vec::new();
            idents_in(mac.tokens.clone(), &mut idents);
            self.found |= idents.contains(self.name);
        }
    }
    let mut search = Search { name, found: false };
    search.visit_block(block);
    search.found
}

/// Whether `block` assigns the whole of `name` anywhere.
pub(crate) fn assigns_somewhere(block: &Block, name: &Ident) -> bool {
    struct Search<'s> {
        name: &'s Ident,
        found: bool,
    }
    impl<'a> Visit<'a> for Search<'_> {
        fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
            self.found |= assigned_names(&assign.left).contains(&self.name);
            visit::visit_expr_assign(self, assign);
        }
    }
    let mut search = Search { name, found: false };
    search.visit_block(block);
    search.found
}
