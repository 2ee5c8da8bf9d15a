//! Prefix tree (radix tree in steps of one page): finds cached pages by their tokens.

use std::collections::{HashMap, HashSet};

use lm_model::{NO_PAGE, PAGE_LEN, PageId};
use lm_tokenizer::TokenId;

/// Id of a prefix of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(usize);

/// Key of a prefix: its parent and the tokens of its last page. Tokens are compared, not only their hashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Edge {
    parent: NodeId,
    ids: [TokenId; PAGE_LEN],
}

#[derive(Debug)]
struct Node {
    /// `None` for a root, which is the empty prefix.
    edge: Option<Edge>,
    /// Page of each group, [`NO_PAGE`] where none is cached.
    pages: Vec<PageId>,
    /// Prefixes longer by one page.
    children: HashSet<NodeId>,
    /// References from outside.
    ref_count: usize,
}

/// Prefixes that are referenced or have a cached page, and their ancestors.
#[derive(Debug)]
pub(crate) struct PrefixTree {
    groups: usize,
    nodes: Vec<Option<Node>>,
    free: Vec<NodeId>,
    by_edge: HashMap<Edge, NodeId>,
}

impl PrefixTree {
    /// Creates an empty tree for a cache with `groups` groups.
    pub fn new(groups: usize) -> Self {
        Self { groups, nodes: Vec::new(), free: Vec::new(), by_edge: HashMap::new() }
    }

    /// Creates a new root with a reference count of 1. Prefixes of different roots do not share pages.
    pub fn new_root(&mut self) -> NodeId {
        let root = self.insert(None);
        self.retain(root);
        root
    }

    /// Looks up the prefixes of `ids` in whole pages, up to the first unknown one.
    pub fn walk(&self, root: NodeId, ids: &[TokenId]) -> Vec<NodeId> {
        let (pages, _) = ids.as_chunks::<PAGE_LEN>();
        let go_on = |parent: &mut NodeId, ids: &[TokenId; PAGE_LEN]| {
            *parent = *self.by_edge.get(&Edge { parent: *parent, ids: *ids })?;
            Some(*parent)
        };
        pages.iter().scan(root, go_on).collect()
    }

    /// Prefixes on the path to `node`, including itself, without the root.
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let parent = |&node: &NodeId| self.node(node).edge.as_ref().map(|edge| edge.parent);
        let mut path: Vec<NodeId> = std::iter::successors(Some(node), parent).collect();
        path.pop();
        path.reverse();
        path
    }

    /// Pages of all groups of the prefixes that extend `root`, with their nodes.
    pub fn pages_of(&self, root: NodeId) -> Vec<(NodeId, usize, PageId)> {
        let (mut found, mut open) = (Vec::new(), vec![root]);
        while let Some(node) = open.pop() {
            let Node { pages, children, .. } = self.node(node);
            let cached = pages.iter().enumerate().filter(|&(_, &page)| page != NO_PAGE);
            found.extend(cached.map(|(group, &page)| (node, group, page)));
            open.extend(children);
        }
        found
    }

    /// Number of references to the prefix, excluding longer prefixes.
    pub fn references(&self, node: NodeId) -> usize {
        self.node(node).ref_count
    }

    /// Returns or creates the prefix that extends `parent` by a page of `ids`. A new prefix must be retained
    /// or get a page.
    pub fn child(&mut self, parent: NodeId, ids: &[TokenId; PAGE_LEN]) -> NodeId {
        let edge = Edge { parent, ids: *ids };
        if let Some(&child) = self.by_edge.get(&edge) {
            return child;
        }
        let child = self.insert(Some(edge));
        self.node_mut(parent).children.insert(child);
        child
    }

    /// Page of a group that ends the prefix, or [`NO_PAGE`].
    pub fn page(&self, node: NodeId, group: usize) -> PageId {
        self.node(node).pages[group]
    }

    /// Sets the page of a group.
    pub fn set_page(&mut self, node: NodeId, group: usize, page: PageId) {
        self.node_mut(node).pages[group] = page;
    }

    /// Clears the page of a group, and removes the prefix if it is unused.
    pub fn clear_page(&mut self, node: NodeId, group: usize) {
        self.set_page(node, group, NO_PAGE);
        self.prune(node);
    }

    /// Increments the reference count of a prefix.
    pub fn retain(&mut self, node: NodeId) {
        self.node_mut(node).ref_count += 1;
    }

    /// Decrements the reference count of a prefix, and removes it if it is unused.
    pub fn release(&mut self, node: NodeId) {
        self.node_mut(node).ref_count -= 1;
        self.prune(node);
    }

    fn insert(&mut self, edge: Option<Edge>) -> NodeId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            NodeId(self.nodes.len() - 1)
        });
        if let Some(edge) = &edge {
            self.by_edge.insert(edge.clone(), id);
        }
        let pages = vec![NO_PAGE; self.groups];
        self.nodes[id.0] = Some(Node { edge, pages, children: HashSet::new(), ref_count: 0 });
        id
    }

    /// Removes `node` if it is unused, and then its unused ancestors.
    fn prune(&mut self, mut node: NodeId) {
        loop {
            let Node { pages, children, ref_count, .. } = self.node(node);
            if *ref_count > 0 || !children.is_empty() || pages.iter().any(|&page| page != NO_PAGE) {
                return;
            }
            let removed = self.nodes[node.0].take();
            self.free.push(node);
            let Some(edge) = removed.and_then(|removed| removed.edge) else { return };
            self.by_edge.remove(&edge);
            self.node_mut(edge.parent).children.remove(&node);
            node = edge.parent;
        }
    }

    fn node(&self, node: NodeId) -> &Node {
        self.nodes[node.0].as_ref().expect("a known node is retained or has a page")
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        self.nodes[node.0].as_mut().expect("a known node is retained or has a page")
    }

    /// Number of prefixes, roots included.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.nodes.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(first: TokenId) -> [TokenId; PAGE_LEN] {
        std::array::from_fn(|i| first + i as TokenId)
    }

    #[test]
    fn prefix_is_found_by_all_its_tokens() {
        let mut tree = PrefixTree::new(1);
        let root = tree.new_root();
        let one = tree.child(root, &page(0));
        let two = tree.child(one, &page(100));
        tree.set_page(two, 0, 7);
        let ids = [page(0), page(100)].concat();
        assert_eq!(tree.walk(root, &ids), [one, two]);
        assert_eq!(tree.walk(root, &ids[..63]), [one]);
        assert_eq!(tree.walk(root, &[page(0), page(101)].concat()), [one]);
        assert_eq!(tree.walk(root, &ids[1..]), []);
        assert_eq!(tree.path(two), [one, two]);
        let other = tree.new_root();
        assert_eq!(tree.walk(other, &ids), []);
    }

    #[test]
    fn every_token_of_a_page_counts() {
        let mut tree = PrefixTree::new(1);
        let root = tree.new_root();
        let known = tree.child(root, &page(0));
        tree.set_page(known, 0, 7);
        for place in 0..PAGE_LEN {
            let mut other = page(0);
            other[place] += 1;
            assert_eq!(tree.walk(root, &other), [], "token {place} differs");
            let child = tree.child(root, &other);
            assert_ne!(child, known, "token {place} differs");
            tree.retain(child);
            tree.release(child);
        }
        assert_eq!(tree.walk(root, &page(0)), [known]);
    }

    #[test]
    fn unused_nodes_and_their_parents_are_removed() {
        let mut tree = PrefixTree::new(2);
        let root = tree.new_root();
        let one = tree.child(root, &page(0));
        let two = tree.child(one, &page(100));
        tree.set_page(two, 0, 7);
        tree.set_page(two, 1, 3);
        tree.retain(one);
        tree.clear_page(two, 0);
        assert_eq!(tree.len(), 3);
        tree.clear_page(two, 1);
        assert_eq!(tree.len(), 2, "the first page's prefix is held");
        tree.release(one);
        assert_eq!(tree.len(), 1);
        assert_eq!(tree.walk(root, &page(0)), []);
    }

    #[test]
    fn slots_of_removed_prefixes_are_reused() {
        let mut tree = PrefixTree::new(1);
        let root = tree.new_root();
        for first in 0..10 {
            let child = tree.child(root, &page(first));
            tree.retain(child);
            tree.release(child);
        }
        assert_eq!((tree.len(), tree.nodes.len()), (1, 2));
    }
}
