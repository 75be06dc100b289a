// Package stream holds the rules of streams: what an attempt says while it works, as frames in three modes, each kept by rules of its own.
//
// Everything here is a pure function of values: it performs no I/O, reads no clock and starts no goroutine. It knows an attempt by its index and its lease
// by an epoch, and nothing else of an execution. It imports base and the standard library alone. Its files:
//
//   - mode, policy, frame: frames, what a caller gives of one, and the checks of an append's arguments
//   - cursor: places in the streams of an execution
//   - head, pace: the record of one stream: what was ever appended, the last call, the rate of best-effort frames, the close
//   - append: one call, which becomes chunks, a new head and a new summary document
//   - chunk, frames, key, coding: what a call stores of each mode, its encoding, and the text by which chunks are sorted
//   - retention: which frames are retained, and which chunks may be deleted
//   - document, patch, member, tree, syntax: summary documents and the merge patches that make them
//   - read, merge: pages of frames out of the chunks of several modes
//   - follow: what a reader who follows an execution is sent next
//
// A store keeps three kinds of rows: a head for each attempt, the chunks of each attempt and mode under sortable keys, and a document for each attempt
// with summary frames. What a reader gets follows from the head and the chunks that are retained by it: chunks that are out of retention may still be
// there or not, with the same result.
package stream
