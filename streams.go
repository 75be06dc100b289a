package flowfabric

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/api"
)

// NewFrame is a frame to append to the stream of an attempt. The zero value is a durable frame of type data without a payload.
type NewFrame = api.NewFrame

// Frame is an entry of a stream: what an attempt has said, or a control frame.
type Frame = api.Frame

// Modes of frames. They state how long a frame is kept.
const (
	ModeDurable    = api.ModeDurable    // within the bounds of the stream policy; the default
	ModeSummary    = api.ModeSummary    // a merge patch (RFC 7396) of the summary document of the attempt
	ModeBestEffort = api.ModeBestEffort // for a short time, in a number that follows the rate
)

// Types of control frames, which are among the frames of Run.Frames. No worker can send one.
const (
	AttemptStarted = api.AttemptStarted // what earlier attempts have said is superseded
	AttemptClosed  = api.AttemptClosed  // the attempt has ended, and says nothing more
	FrameGap       = api.FrameGap       // frames before Frame.Before are no longer kept
	StreamClosed   = api.StreamClosed   // the execution has ended; the last frame
)

// Frames returns what the newest attempt of the execution says, from its start, as it says it, and then every newer attempt from
// its start; it ends when the execution has ended, or ctx ends. Control frames are among the frames: AttemptStarted comes before
// the first frame of an attempt, so that a reader discards what an earlier attempt has said. It keeps trying through
// interruptions of the store. Client.Streams reads single attempts, and continues after a frame.
//
// Codes: execution_not_found.
func (r *Run[Out]) Frames(ctx context.Context) iter.Seq2[Frame, error] {
	return r.client.Streams().Follow(ctx, r.id)
}
