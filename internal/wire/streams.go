package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// streamCalls are the streams of attempts.
var streamCalls = []*Operation{row(AppendFrames), row(ReadStream), row(FollowStreams), row(GetSummary)}

// Operations on streams.
var (
	AppendFrames = Call[AppendFramesRequest, api.FrameReceipt]{&Operation{
		ID: "append_frames", Rule: "U73", Method: http.MethodPost, Path: "/v1/executions/{id}/frames", Roles: Work,
		Go: "Work.Do(frames)", Command: "work", Summary: "Append frames to the stream of the attempt, all of them or none", Status: []int{http.StatusOK},
	}}
	ReadStream = Call[ReadStreamRequest, api.FramePage]{&Operation{
		ID: "read_stream", Rule: "U107", Method: http.MethodGet, Path: "/v1/executions/{id}/attempts/{n}/stream", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Streams.Read", Command: "tail --attempt", Summary: "Read the stream of one attempt, or wait for what it says",
		Status: []int{http.StatusOK, http.StatusNoContent}, Waits: true, Streams: true,
	}}
	FollowStreams = Call[FollowStreamsRequest, api.FramePage]{&Operation{
		ID: "follow_streams", Rule: "U107", Method: http.MethodGet, Path: "/v1/executions/{id}/stream", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Streams.Follow", Command: "tail", Summary: "Follow what the attempts of an execution say, until it ends",
		Status: []int{http.StatusOK, http.StatusNoContent}, Waits: true, Streams: true,
	}}
	GetSummary = Call[GetSummaryRequest, api.StreamSummary]{&Operation{
		ID: "get_summary", Rule: "U107", Method: http.MethodGet, Path: "/v1/executions/{id}/summary", Roles: Read | Submit | Work, Only: ownOrLanes,
		Go: "Streams.Summary", Command: "tail --summary", Summary: "Read the summary document of an attempt, or wait until it changes",
		Status: []int{http.StatusOK}, Waits: true,
	}}
)

// FramesFields are the frames of one append.
type FramesFields struct {
	Frames    []api.NewFrame `json:"frames" required:"true" most:"256" doc:"The frames, 1 to 256, at most 1 MiB together."`
	ClientSeq *int64         `json:"client_seq,omitempty" doc:"Grows with every call under a lease: a call with the number of the last one is its repeat, and gets its answer."`
}

// AppendFramesRequest appends frames. A body that is not JSON is the payload of one frame, with the lease in the header.
type AppendFramesRequest struct {
	FencedByID
	Type      string `query:"type" argument:"frames[0].type" doc:"With a raw body: type of the frame."`
	Mode      string `query:"mode" argument:"frames[0].mode" enum:"durable,summary,best_effort" doc:"With a raw body: mode of the frame."`
	ClientSeq *int64 `query:"client_seq" doc:"With a raw body: as the field client_seq."`
	Body      struct {
		LeaseField
		FramesFields
	}
	Raw Raw `accept:"*/*" doc:"The payload of one frame."`
}

// Append returns the frames and the number of the call, from the JSON or the raw body.
func (r *AppendFramesRequest) Append() ([]api.NewFrame, *int64) {
	if r.Raw.ContentType == "" {
		return r.Body.Frames, r.Body.ClientSeq
	}
	return []api.NewFrame{{Type: r.Type, Mode: r.Mode, Payload: api.Bytes(r.Raw.Data, r.Raw.ContentType)}}, r.ClientSeq
}

// FrameFields select frames, and where a reader continues (E14, E21).
type FrameFields struct {
	After       string   `query:"after" doc:"Continue after this position: the id of a frame, start, end or closed."`
	Types       []string `query:"types" doc:"Only frames of these types, by comma."`
	Modes       []string `query:"modes" enum:"durable,summary,best_effort" doc:"Only frames of these modes, by comma."`
	Limit       *int     `query:"limit" minimum:"0" doc:"Frames per page; 100 if absent, at most 1000."`
	LastEventID string   `header:"Last-Event-ID" argument:"after" doc:"With server-sent events: where to continue."`
	LastID      string   `query:"last_event_id" argument:"after" doc:"Last-Event-ID for clients that cannot set the header."`
}

// Resumed is the position of a reader that has read before; "": it has not. It goes before everything else that says where to read.
func (f *FrameFields) Resumed() string {
	if f.LastEventID != "" {
		return f.LastEventID
	}
	return f.LastID
}

// Position is the position after which to read; "": none is given.
func (f *FrameFields) Position() string {
	if resumed := f.Resumed(); resumed != "" {
		return resumed
	}
	return f.After
}

// ReadOn makes the request go on after a position.
func (f *FrameFields) ReadOn(after string) { f.After, f.LastEventID, f.LastID = after, "", "" }

// ReadStreamRequest reads the stream of one attempt.
type ReadStreamRequest struct {
	ByID
	N string `path:"n" doc:"Index of the attempt, or latest."`
	WaitFields
	FrameFields
	From string `query:"from" doc:"Read from this frame on; the number of the frame alone is enough."`
	To   string `query:"to" doc:"Read up to this frame; the end if absent."`
	EncodingField
}

// FollowStreamsRequest follows the streams of an execution.
type FollowStreamsRequest struct {
	ByID
	Follow string `query:"follow" enum:"latest,all" doc:"latest: the newest attempt alone, and each newer one from its start (default). all: every attempt, in order."`
	WaitFields
	FrameFields
	EncodingField
}

// GetSummaryRequest reads a summary document.
type GetSummaryRequest struct {
	ByID
	Attempt     string `query:"attempt" doc:"Index of the attempt; latest if absent."`
	WaitVersion *int64 `query:"wait_version" minimum:"0" doc:"With a wait: answer once the version is above this number."`
	WaitFields
}
