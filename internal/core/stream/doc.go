// Package stream holds the rules of streams: the frames that an attempt appends while it works, in three modes with different retention.
//
// Everything here is a pure function of values: it performs no I/O, reads no clock and starts no goroutine. It knows the index of
// an attempt and the epoch of a lease, and nothing else of an execution. It imports base and the standard library alone. Its files:
//
//   - mode, policy, frame: frames, what a caller gives of one, and the checks of an append's arguments
//   - cursor: places in the streams of an execution
//   - head, pace: the record of one stream: what was ever appended, the last call, the rate of best-effort frames, the close
//   - append: one call, which becomes chunks, a new head and a new summary document
//   - chunk, frames, key, coding: what a call stores of each mode, its encoding, and the text by which chunks are sorted
//   - retention: which frames are retained, and which chunks may be deleted
//   - document, patch, member, tree, syntax: summary documents and the merge patches that make them
//   - read, merge: pages of frames out of the chunks of several modes
//   - follow: which control items and frames a reader who follows an execution is sent, and in which order
//
// A store keeps three kinds of rows: a head for each attempt, the chunks of each attempt and mode under sortable keys, and a document for each attempt
// with summary frames. The head decides which frames are retained: a read returns the same whether
// chunks that are out of retention were deleted or not.
package stream
