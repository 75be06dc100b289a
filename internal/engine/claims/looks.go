package claims

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// refreshAtMost bounds how many waiting instances one transaction keeps alive.
const refreshAtMost = 1000

// lookOf returns when the record of a call's instance must be read again: at once if it is not cached.
func (p *picker) lookOf(call *claim) workerLiveness {
	if look := p.looks[call.req.InstanceID]; look != nil {
		return *look
	}
	return workerLiveness{}
}

// strangeTo reports whether the instance was not the call's when its record was last read: the store must say whether the id is taken, also if
// there is no work to look for (U121, SI13).
func (l *workerLiveness) strangeTo(call *claim) bool {
	return l.doc != nil && (l.worker.WorkerID != call.req.WorkerID || !l.worker.OwnedBy(call.caller.Registrant()))
}

// cameBefore reports whether the claim waited already when its instance left. It must not revive an instance that has lapsed since: only a later
// claim shows that the instance has returned.
func (c *claim) cameBefore(left *core.Worker) bool {
	return left != nil && left.Leaving && (c.looked || c.before.Load())
}

// overdue returns one waiting claim of every instance that may be refreshed, as soon as the first of them must be (S50). Claims that have not
// looked yet are left out: they look in any case. So are those that keep nothing alive: what changes in their instances reaches them (recheck).
func (p *picker) overdue(now time.Time) map[*claim]bool {
	first := false
	due, instances := map[*claim]bool{}, map[string]bool{}
	for _, call := range p.waiting {
		look := p.lookOf(call)
		if !call.looked || call.bystander || now.Before(look.from) || instances[call.req.InstanceID] {
			continue
		}
		first = first || !now.Before(look.until)
		if len(due) < refreshAtMost {
			instances[call.req.InstanceID], due[call] = true, true
		}
	}
	if !first {
		return nil
	}
	return due
}

// sawWorkers updates the cached records of instances with what this process has just written.
func (p *picker) sawWorkers(written []store.Doc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range written {
		if doc := &written[i]; doc.Kind == txn.DocWorker {
			if look := p.looks[doc.Key]; look != nil && look.doc != nil {
				changed := *look // a copy: picks under way use the old one
				changed.doc = doc
				p.looks[doc.Key] = &changed
			}
		}
	}
}

// expect records which instances the pick looks at, and sets refresh if it may have to write the record of one.
func (k *pick) expect(now time.Time) {
	p := k.p
	if len(p.looks) > 4*p.e.Cfg.MaxWaitingClaims {
		p.forgetLooks()
	}
	for _, call := range k.calls {
		look := p.lookOf(call)
		k.refresh = k.refresh || !now.Before(look.from)
		k.looks[call.req.InstanceID] = &look
		p.looks[call.req.InstanceID] = &look
	}
}

// forgetLooks drops what is cached of instances without waiting claims.
func (p *picker) forgetLooks() {
	kept := map[string]*workerLiveness{}
	for _, call := range p.waiting {
		if look := p.looks[call.req.InstanceID]; look != nil {
			kept[call.req.InstanceID] = look
		}
	}
	p.looks = kept
}

// noteLooks records when the records that the pick read must be read again, except those that changed meanwhile, which recheck has dropped. The
// picker's lock is held.
func (k *pick) noteLooks() {
	host := k.p.e.Cfg.Clock.Now()
	for id, w := range k.workers {
		if look := k.looks[id]; k.p.looks[id] == look {
			*look = nextLook(w, k.now, host)
			look.doc, look.worker = k.docs[id], w
		}
	}
	for call, bystander := range k.bystand {
		call.bystander = bystander
	}
	for call := range k.lapsed {
		delete(k.p.looks, call.req.InstanceID)
		call.check = true
	}
}

// nextLook returns when to read a record again that was read at now, which was host by the clock of this process.
func nextLook(w *core.Worker, now base.Time, host time.Time) workerLiveness {
	in := func(at base.Time) time.Time {
		return host.Add(time.Duration(max(at.Sub(now)+1, 100)) * time.Millisecond)
	}
	third, half := w.LivenessTTLMS/3, w.LivenessTTLMS/2
	return workerLiveness{from: in(w.LastSeen.Add(third)), until: in(w.LastSeen.Add(half))}
}
