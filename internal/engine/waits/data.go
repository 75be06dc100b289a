package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// WaitBytes bounds the payloads of one execution's waits in one answer. What does not fit is left out: its size is shown, and lists of signals
// return it in parts.
const WaitBytes = 8 << 20

// WaitData gathers payloads that are to be shown, so that one read fills all of them.
type WaitData struct {
	Blank []blankPayload
}

// blankPayload is a payload whose bytes are not loaded yet.
type blankPayload struct {
	ref       store.DocRef
	execution base.UUID
	payload   *core.Payload
}

// Observation requests what a suspension shows, as far as there is room: what it keeps for the worker that continues, the signals that count, then
// the others. It returns how many bytes that is.
func (d *WaitData) Observation(id base.UUID, o *core.Observation, room int) (used int) {
	room = min(room, WaitBytes)
	if c := o.Continuation; c != nil && c.Size <= room {
		d.add(id, continuationRef(id, o.Seq), c)
		used = c.Size
	}
	return used + d.signalsWithin(id, o.Signals, room-used)
}

// signalsWithin asks for the bytes of signals that have room, those that count first. The list must not move until they are filled.
func (d *WaitData) signalsWithin(id base.UUID, signals []core.Signal, room int) (used int) {
	for _, matched := range []bool{true, false} {
		for i := range signals {
			if s := &signals[i]; s.Matched == matched && s.Payload.Size <= room-used {
				d.add(id, signalDataRef(id, s.Ordinal), &s.Payload)
				used += s.Payload.Size
			} else if s.Matched == matched {
				s.Payload.Data = nil // one that a timer has made just now is there
			}
		}
	}
	return used
}

// signals asks for the bytes of all the signals.
func (d *WaitData) signals(id base.UUID, signals []core.Signal) {
	for i := range signals {
		d.add(id, signalDataRef(id, signals[i].Ordinal), &signals[i].Payload)
	}
}

// add asks for one payload. An empty one is not stored; one that is there, because a timer has made it just now, is not asked for.
func (d *WaitData) add(id base.UUID, ref store.DocRef, p *core.Payload) {
	if p.Size == 0 {
		p.Data = []byte{}
	}
	if len(p.Data) != p.Size {
		d.Blank = append(d.Blank, blankPayload{ref, id, p})
	}
}

// Load fills in the payloads, and returns for which executions bytes are missing. Nothing is read if there are no payloads.
func (d *WaitData) Load(ctx context.Context, s store.Store) (missing map[base.UUID]error, err error) {
	if len(d.Blank) == 0 {
		return nil, nil
	}
	refs := make([]store.DocRef, len(d.Blank))
	for i := range d.Blank {
		refs[i] = d.Blank[i].ref
	}
	loaded, err := s.Read(ctx, store.Want{Docs: refs})
	if err != nil {
		return nil, err
	}
	for _, b := range d.Blank {
		doc, ok := loaded.Docs[b.ref]
		if err := doc.Whole(); err != nil {
			txn.SetIn(&missing, b.execution, err)
			continue
		}
		if !ok || len(doc.Data) != b.payload.Size {
			txn.SetIn(&missing, b.execution, error(base.Errorf(base.CodeCorruption, "the bytes of a payload are missing").With("record", b.ref.Owner).With("field", b.ref.Key)))
			continue
		}
		b.payload.Data = doc.Data
	}
	return missing, nil
}
