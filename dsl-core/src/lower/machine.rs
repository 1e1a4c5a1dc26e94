//! What `nvdisasm` shows of machine code, read as a graph of jumps.

use std::collections::{BTreeSet, HashMap};

use petgraph::Direction;
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};

/// A loop that issues products of a whole warpgroup, with none inside it that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainLoop {
    /// Address of its first instruction, in bytes from the kernel's.
    pub address: u32,
    /// Instructions in it, those that wait out of line among them.
    pub instructions: u32,
    /// Products.
    pub products: u32,
    /// Instructions `R2UR`: each takes a value from a thread's register to the warp's, and the products that want it
    /// (descriptors, mostly) wait for that.
    pub moves_to_uniform: u32,
    /// Whether one thread starts the products, which then run beside the block (`tcgen05.mma`), and not a warpgroup.
    pub by_one_thread: bool,
}

/// An instruction: its address, its opcode and where it may jump.
struct Instruction<'t> {
    address: u32,
    opcode: &'t str,
    predicated: bool,
    jump: Option<&'t str>,
}

/// A line such as `/*0010*/  @!P0 BRA `(.L_x_1) ;`.
fn instruction(line: &str) -> Option<Instruction<'_>> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let address = u32::from_str_radix(address, 16).ok()?;
    let text = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '{');
    let mut words = text.split_whitespace();
    let mut opcode = words.next()?;
    let predicated = opcode.starts_with('@');
    if predicated {
        opcode = words.next()?;
    }
    // The second half of an encoding stands on a line of its own, in a comment.
    if !opcode.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let jump = text.split_once("`(").and_then(|(_, label)| label.split_once(')')).map(|(label, _)| label);
    Some(Instruction { address, opcode, predicated, jump })
}

fn base(opcode: &str) -> &str {
    opcode.split('.').next().unwrap_or(opcode)
}

/// Products of a warpgroup, and those of Blackwell's that one thread starts.
fn is_product(opcode: &str) -> bool {
    matches!(base(opcode), "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA") || is_product_of_one_thread(opcode)
}

fn is_product_of_one_thread(opcode: &str) -> bool {
    let base = base(opcode);
    base.starts_with("UTC") && base.ends_with("MMA")
}

/// Finds the main loops in the output of `nvdisasm -c`.
pub fn main_loops(text: &str) -> Vec<MainLoop> {
    // One node for each instruction: kernels have thousands at most.
    let mut graph: DiGraph<Instruction<'_>, ()> = DiGraph::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        if let Some(label) = line.trim().strip_suffix(':').filter(|label| label.starts_with(".L_")) {
            labels.insert(label, graph.node_count());
        } else if let Some(found) = instruction(line) {
            graph.add_node(found);
        }
    }
    let count = graph.node_count();
    if count == 0 {
        return Vec::new();
    }
    for (index, node) in graph.node_indices().enumerate().collect::<Vec<_>>() {
        let Some(Instruction { opcode, predicated, jump, .. }) = graph.node_weight(node) else { continue };
        let (ends, target) = match base(opcode) {
            "EXIT" | "RET" | "KILL" | "BPT" => (!predicated, None),
            "BRA" | "JMP" => (!predicated, jump.and_then(|label| labels.get(label))),
            // These name where threads meet again, and do not jump.
            _ => (false, None),
        };
        let next = (!ends && index + 1 < count).then_some(index + 1);
        for to in target.copied().into_iter().chain(next) {
            if to < count {
                graph.add_edge(node, NodeIndex::new(to), ());
            }
        }
    }
    let mut loops = natural_loops(&graph);
    loops.retain(|body| body.iter().any(|node| graph.node_weight(*node).is_some_and(|found| is_product(found.opcode))));
    let innermost =
        loops.iter().filter(|body| !loops.iter().any(|other| other.len() < body.len() && other.is_subset(body)));
    let among = |body: &BTreeSet<NodeIndex>, wanted: &dyn Fn(&str) -> bool| {
        let count =
            body.iter().filter(|node| graph.node_weight(**node).is_some_and(|found| wanted(found.opcode))).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    innermost
        .map(|body| MainLoop {
            address: body.first().and_then(|node| graph.node_weight(*node)).map_or(0, |found| found.address),
            instructions: among(body, &|_| true),
            products: among(body, &is_product),
            moves_to_uniform: among(body, &|opcode| base(opcode) == "R2UR"),
            by_one_thread: among(body, &is_product_of_one_thread) > 0,
        })
        .collect()
}

/// The bodies of the natural loops, one for each instruction that some jump comes back to.
fn natural_loops(graph: &DiGraph<Instruction<'_>, ()>) -> Vec<BTreeSet<NodeIndex>> {
    let dominators = dominators::simple_fast(graph, NodeIndex::new(0));
    let mut bodies: HashMap<NodeIndex, BTreeSet<NodeIndex>> = HashMap::new();
    for edge in graph.edge_indices() {
        let Some((from, head)) = graph.edge_endpoints(edge) else { continue };
        // Most edges go to the next instruction.
        if from < head || !dominators.dominators(from).is_some_and(|mut above| above.any(|node| node == head)) {
            continue;
        }
        let body = bodies.entry(head).or_insert_with(|| BTreeSet::from([head]));
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if body.insert(node) {
                open.extend(graph.neighbors_directed(node, Direction::Incoming));
            }
        }
    }
    bodies.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A persistent loop around the main one, whose wait stands behind the end of the kernel and jumps back.
    const TEXT: &str = "
.text.k:
.L_x_0:
        /*0000*/                   R2UR UR4, R2 ;
.L_x_1:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3 ;
        /*0020*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0030*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
                                                          /* 0x0000000000000000 */
        /*0040*/                   R2UR UR9, R5 ;
        /*0050*/              @!P1 BRA `(.L_x_1) ;
        /*0060*/               @P2 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3 ;
        /*0090*/              @!P0 BRA `(.L_x_3) ;
        /*00a0*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*00b0*/                   BRA `(.L_x_4);
";

    #[test]
    fn only_the_innermost_loop_with_products_counts() {
        let found = main_loops(TEXT);
        assert_eq!(
            found,
            [MainLoop { address: 0x10, instructions: 8, products: 1, moves_to_uniform: 1, by_one_thread: false }],
            "the loop of three behind the end belongs to it; the move before it does not"
        );
        let [found] = main_loops(&TEXT.replace("HGMMA.64x64x16.F32.BF16", "UTCHMMA")).try_into().unwrap();
        assert_eq!((found.products, found.by_one_thread), (1, true));
    }

    #[test]
    fn code_without_products_has_no_main_loop() {
        assert_eq!(main_loops(""), []);
        let text = TEXT.replace("HGMMA", "HMMA");
        assert_eq!(main_loops(&text), []);
    }
}
