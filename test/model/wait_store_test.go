package model

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// How waits lie in the store. The numbers and letters are stored, so that they never change.
const (
	waitDocs store.DocKind = 15 + iota // of an execution: every record of its waits
	waitDataDocs
	waitpointAtDocs
	waitpointOpenDocs
	linkAtDocs
	suspendedDocs
)

// markKinds are the docs by which waitpoints, links and suspended executions are found.
var markKinds = []store.DocKind{waitpointAtDocs, waitpointOpenDocs, linkAtDocs, suspendedDocs}

// wantWaits adds all that is stored of waits.
func wantWaits(want *store.Want, ids []base.UUID) {
	for _, id := range ids {
		for _, kind := range []store.DocKind{waitDocs, waitDataDocs} {
			want.Owned = append(want.Owned, store.Owned{Kind: kind, Owner: id.String()})
		}
	}
	for _, kind := range markKinds {
		want.Scans = append(want.Scans, store.Scan{Kind: kind})
	}
}

// waitsIn reads the dossier of an execution, with the bytes of its payloads.
func waitsIn(loaded *store.Loaded, id base.UUID) (d core.WaitState, err error) {
	data := map[string][]byte{}
	for _, doc := range loaded.Owned[store.Owned{Kind: waitDataDocs, Owner: id.String()}] {
		data[doc.Key] = doc.Data
	}
	for _, doc := range loaded.Owned[store.Owned{Kind: waitDocs, Owner: id.String()}] {
		if err := readWait(&d, &doc); err != nil {
			return d, fmt.Errorf("%s %s: %w", id, doc.Key, err)
		}
	}
	for i := range d.Signals {
		s := &d.Signals[i]
		key := fmt.Sprintf("g%08d", s.Ordinal)
		s.Payload.Data = data[key]
		delete(data, key)
	}
	for i := range d.Suspensions {
		if s := &d.Suspensions[i]; s.Continuation != nil {
			key := fmt.Sprintf("s%08d", s.Seq)
			s.Continuation.Data = data[key]
			delete(data, key)
		}
	}
	if len(data) > 0 {
		return d, fmt.Errorf("%s: bytes that belong to nothing: %q", id, data)
	}
	return d, nil
}

func readWait(d *core.WaitState, doc *store.Doc) (err error) {
	switch doc.Key[0] {
	case 'w':
		return into(&d.Waitpoints, doc, core.DecodeWaitpoint)
	case 'W':
		return into(&d.WaitpointEnds, doc, core.DecodeWaitpointEnd)
	case 's':
		return into(&d.Suspensions, doc, core.DecodeSuspension)
	case 'S':
		return into(&d.SuspensionEnds, doc, core.DecodeSuspensionEnd)
	case 'g':
		return into(&d.Signals, doc, core.DecodeSignal)
	case 'l':
		return into(&d.Links, doc, core.DecodeLink)
	case 'L':
		return into(&d.LinkEnds, doc, core.DecodeLinkEnd)
	default:
		return fmt.Errorf("it is not known what this is")
	}
}

func into[T any](list *[]T, doc *store.Doc, decode func([]byte) (T, error)) error {
	record, err := decode(doc.Body)
	*list = append(*list, record)
	return err
}

// marksIn tells which marks are stored, by kind and key; of a suspended execution its id is what counts.
func marksIn(loaded *store.Loaded) []string {
	var all []string
	for i, kind := range markKinds {
		for _, doc := range loaded.Scanned[i] {
			key := doc.Key
			if kind == suspendedDocs {
				key = key[len(key)-36:]
			}
			all = append(all, fmt.Sprintf("%d %s", kind, key))
		}
	}
	slices.Sort(all)
	return all
}

// marksOf tells which marks the records call for (I18).
func marksOf(records map[base.UUID]*record) []string {
	var all []string
	mark := func(kind store.DocKind, key base.UUID) { all = append(all, fmt.Sprintf("%d %s", kind, key)) }
	for id, r := range records {
		for i := range r.d.Waitpoints {
			mark(waitpointAtDocs, r.d.Waitpoints[i].ID)
		}
		for i := range r.d.Links {
			mark(linkAtDocs, r.d.Links[i].ID)
		}
		if w := r.x.Waits; w != nil {
			for i := range w.Open {
				mark(waitpointOpenDocs, w.Open[i].ID)
			}
			if w.Suspension != nil {
				mark(suspendedDocs, id)
			}
		}
	}
	slices.Sort(all)
	return all
}
