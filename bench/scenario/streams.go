package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
	"github.com/flowfabric/flowfabric/ops"
)

// streamsPlan is E1..E23: how soon a reader sees a frame, how many frames come in from many writers, and how fast a long stream is read.
type streamsPlan struct {
	Writers   int `json:"writers"`
	Rounds    int `json:"rounds"`     // frames that are followed one by one
	FramesIn  int `json:"frames_in"`  // of all writers together
	LongOne   int `json:"long_one"`   // frames of the stream that is read from its start
	CallSize  int `json:"call_size"`  // frames of a call
	FrameSize int `json:"frame_size"` // bytes of a frame
	Talkers   int `json:"talkers"`    // attempts that say something ten times a second, beside a backlog
	Backlog   int `json:"backlog"`    // executions that are worked off alone, and beside the talkers
}

func planStreams(cfg Config) (plan, error) {
	return &streamsPlan{
		Writers: pick(cfg, cfg.Workers, 100, 4), Rounds: pick(cfg, 0, 1000, 20), FramesIn: pick(cfg, cfg.N, 1_000_000, 2000),
		LongOne: pick(cfg, cfg.N, 1_000_000, 3000), CallSize: pick(cfg, cfg.Batch, 64, 16), FrameSize: 100,
		Talkers: pick(cfg, 0, 1000, 8), Backlog: pick(cfg, 0, 20_000, 100),
	}, nil
}

// voice is an attempt that can say something.
type voice struct {
	t       *trial
	claimed *api.Claimed
	calls   int64
	said    int64
}

// voices claims so many executions.
func (p *streamsPlan) voices(ctx context.Context, t *trial, n int) ([]*voice, error) {
	options := flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Stream: api.StreamPolicy{MaxFrames: max(p.FramesIn, p.LongOne, 1), MaxBytes: 1 << 30}}}
	all := make([]flowfabric.Submission, n)
	for i := range all {
		all[i] = noop.Submission(nil, options)
	}
	if _, err := t.place.client.SubmitMany(ctx, all); err != nil {
		return nil, err
	}
	request := api.ClaimRequest{WorkerID: "bench", InstanceID: measure.FreshName(), Lanes: []string{"default"}, Max: n, LeaseTTL: time.Hour, Wait: time.Minute}
	var made []*voice
	for len(made) < n {
		request.Max = n - len(made)
		answer, err := t.place.client.Work().Claim(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, claimed := range answer.Tasks {
			made = append(made, &voice{t: t, claimed: claimed})
		}
	}
	return made, nil
}

// say appends frames in one call.
func (v *voice) say(ctx context.Context, frames []flowfabric.NewFrame) error {
	v.calls++
	answers, err := v.t.place.client.Work().Do(ctx, api.WorkItem{Op: api.OpFrames, ID: v.claimed.ID, Lease: v.claimed.Lease, Frames: frames, ClientSeq: &v.calls})
	if err != nil {
		return err
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	v.said = answers[0].Frames.FrameCount
	return nil
}

func (v *voice) end(ctx context.Context) error {
	answers, err := v.t.place.client.Work().Do(ctx, api.WorkItem{Op: api.OpComplete, ID: v.claimed.ID, Lease: v.claimed.Lease})
	if err != nil {
		return err
	}
	return answers[0].Err
}

func (p *streamsPlan) take(ctx context.Context, t *trial) error {
	few, err := p.voices(ctx, t, 1)
	if err != nil {
		return err
	}
	if err := p.follow(ctx, t, few[0]); err != nil {
		return err
	}
	if err := p.readShort(ctx, t, few[0], "read_beside_few"); err != nil {
		return err
	}
	many, err := p.voices(ctx, t, p.Writers)
	if err != nil {
		return err
	}
	if err := p.pour(ctx, t, many); err != nil {
		return err
	}
	if err := p.readShort(ctx, t, few[0], "read_beside_many"); err != nil {
		return err
	}
	if err := p.readLong(ctx, t); err != nil {
		return err
	}
	if err := p.beside(ctx, t); err != nil {
		return err
	}
	for _, v := range append(many, few...) {
		if err := v.end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// follow takes the time from the call that appends a frame until a reader who waits has it.
func (p *streamsPlan) follow(ctx context.Context, t *trial, v *voice) error {
	heard := make(chan time.Time)
	readers, readCtx := errgroup.WithContext(ctx)
	readCtx, stop := context.WithCancel(readCtx)
	readers.Go(func() error {
		for frame, err := range t.place.client.Streams().Follow(readCtx, v.claimed.ID, ops.FollowOptions{After: "0-0"}) {
			if err != nil {
				return err
			}
			if frame.IsControl() {
				continue
			}
			select {
			case heard <- time.Now():
			case <-readCtx.Done():
			}
		}
		return nil
	})
	var took measure.Durations
	frame := []flowfabric.NewFrame{{Payload: flowfabric.Bytes(bytes.Repeat([]byte{'x'}, p.FrameSize), "")}}
	for range p.Rounds {
		began := time.Now()
		if err := v.say(ctx, frame); err != nil {
			stop()
			return err
		}
		select {
		case at := <-heard:
			took.Add(at.Sub(began))
		case <-readCtx.Done():
			stop()
			return readers.Wait()
		}
	}
	stop()
	t.sample.LatencyMS["append_to_reader"] = took.Latency()
	t.sample.check("followed", p.Rounds, int(v.said))
	return readers.Wait()
}

// pour lets all writers append as fast as they can.
func (p *streamsPlan) pour(ctx context.Context, t *trial, many []*voice) error {
	frames := make([]flowfabric.NewFrame, p.CallSize)
	for i := range frames {
		frames[i] = flowfabric.NewFrame{Payload: flowfabric.Bytes(bytes.Repeat([]byte{'x'}, p.FrameSize), "")}
	}
	var sent atomic.Int64
	began := time.Now()
	writers, writeCtx := errgroup.WithContext(ctx)
	for _, v := range many {
		writers.Go(func() error {
			for sent.Add(int64(p.CallSize)) <= int64(p.FramesIn) {
				if err := v.say(writeCtx, frames); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		return err
	}
	stored := 0
	for _, v := range many {
		stored += int(v.said)
	}
	t.sample.ThroughputPerS = float64(stored) / time.Since(began).Seconds()
	t.sample.check("frames_in", p.FramesIn/p.CallSize*p.CallSize, stored)
	return nil
}

// readShort reads the beginning of one stream, beside others.
func (p *streamsPlan) readShort(ctx context.Context, t *trial, v *voice, name string) error {
	var took measure.Durations
	found := 0
	for range p.Rounds {
		began := time.Now()
		page, err := t.place.client.Streams().Read(ctx, v.claimed.ID, 0, ops.FramesOptions{Limit: 20})
		if err != nil {
			return err
		}
		took.Add(time.Since(began))
		found += len(page.Frames)
	}
	t.sample.LatencyMS[name] = took.Latency()
	t.sample.check(name, p.Rounds*min(20, p.Rounds), found)
	return nil
}

// beside works off a backlog alone, and then beside attempts that talk. As the writer of a worker does, an attempt sends together what it had to say while its
// last call was under way.
func (p *streamsPlan) beside(ctx context.Context, t *trial) error {
	const talkEvery = 100 * time.Millisecond
	cycle := &cyclePlan{N: p.Backlog, Workers: 16, Batch: 500, Drain: true}
	b := newBook(p.Backlog, p.Backlog)
	alone, err := cycle.round(ctx, t, b, 0, p.Backlog, plainly)
	if err != nil {
		return err
	}
	talkers, err := p.voices(ctx, t, p.Talkers)
	if err != nil {
		return err
	}
	talkCtx, stop := context.WithCancel(ctx)
	talking, talkCtx := errgroup.WithContext(talkCtx)
	frames := slices.Repeat([]flowfabric.NewFrame{{Payload: flowfabric.Bytes(bytes.Repeat([]byte{'x'}, p.FrameSize), "")}}, 256)
	began := time.Now()
	for i, v := range talkers {
		talking.Go(func() error {
			next := began.Add(talkEvery * time.Duration(i) / time.Duration(len(talkers)))
			for pause(talkCtx, time.Until(next)) == nil {
				due := min(1+int(time.Since(next)/talkEvery), len(frames))
				switch err := v.say(talkCtx, frames[:due]); {
				case talkCtx.Err() != nil:
					return nil
				case err != nil:
					return err
				}
				next = next.Add(time.Duration(due) * talkEvery)
			}
			return nil
		})
	}
	beside, err := cycle.round(ctx, t, b, p.Backlog, 2*p.Backlog, plainly)
	took := time.Since(began)
	stop()
	if err := errors.Join(err, talking.Wait()); err != nil {
		return err
	}
	said := 0
	for _, v := range talkers {
		said += int(v.said)
		if err := v.end(ctx); err != nil {
			return err
		}
	}
	t.sample.Counts["backlog_alone_per_s"] = float64(p.Backlog) / alone.Seconds()
	t.sample.Counts["backlog_beside_frames_per_s"] = float64(p.Backlog) / beside.Seconds()
	t.sample.Counts["frames_beside_per_s"] = float64(said) / took.Seconds()
	return nil
}

// readLong reads a long stream from its start.
func (p *streamsPlan) readLong(ctx context.Context, t *trial) error {
	long, err := p.voices(ctx, t, 1)
	if err != nil {
		return err
	}
	frames := make([]flowfabric.NewFrame, 250)
	for i := range frames {
		frames[i] = flowfabric.NewFrame{Payload: flowfabric.Bytes(bytes.Repeat([]byte{'x'}, p.FrameSize), "")}
	}
	for said := 0; said < p.LongOne; said += len(frames) {
		if err := long[0].say(ctx, frames[:min(len(frames), p.LongOne-said)]); err != nil {
			return fmt.Errorf("frame %d: %w", said, err)
		}
	}
	if err := long[0].end(ctx); err != nil {
		return err
	}
	read, began := 0, time.Now()
	for after := "start"; ; {
		page, err := t.place.client.Streams().Read(ctx, long[0].claimed.ID, 0, ops.FramesOptions{After: after, Limit: 1000})
		if err != nil {
			return err
		}
		read += len(page.Frames)
		if after = page.Next; page.AtEnd {
			break
		}
	}
	t.sample.Counts["read_per_s"] = float64(read) / time.Since(began).Seconds()
	t.sample.check("read", p.LongOne, read)
	return nil
}
