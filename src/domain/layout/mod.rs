//! How a graph of steps is drawn: where its boxes stand, how its edges bend, and the same as text for a terminal.
//!
//! A picture is made of the definition alone. It knows no state, so that what happens in a run moves nothing; it depends on
//! the order of the steps, never on that of the edges, so that the same definition looks the same everywhere. Left to right:
//!
//! 1. `layers`: a step stands in the column after the last of its predecessors (longest path). An edge over several columns
//!    gets a bend in each of them; beyond a number of bends the longest edges run above the picture instead.
//! 2. `order`: within a column, by the barycentre of the neighbours, in a bounded number of sweeps and neighbours' swaps.
//! 3. `place`: heights, as near to the neighbours as the boxes above and below allow.
//! 4. `draw`: columns and lines become points. The body of a scatter is drawn first; its size becomes that of its box.

mod definition;
mod draw;
mod drawing;
mod graph;
mod layers;
mod order;
mod place;
mod rails;
mod stand;
mod text;

pub use definition::{graph_of, labels_of, steps_of, title_of, type_word};
pub use draw::draw;
pub use drawing::{Drawing, Line, Placed, Point};
pub use graph::{BODY_HEAD, BODY_PAD, Edge, Graph, NODE_HEIGHT, NODE_WIDTH, Node, Undrawable};
pub use stand::{Counts, Known, Stand, Stands};
pub use text::{Label, TextLine, mark_of, plain, text};

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod text_tests;
