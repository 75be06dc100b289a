package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Dictionary loads all lanes, classes and rules in one snapshot.
func (s *Store) Dictionary(ctx context.Context) (*store.Dictionary, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	d := &store.Dictionary{}
	var now base.Time
	var logID base.UUID
	t := s.trip(conn)
	t.add("begin_snapshot", nil)
	t.settings(s.impatient)
	t.add("all_lanes", func(r row) error {
		lane, err := laneOf(r)
		d.Lanes = append(d.Lanes, lane)
		return err
	})
	t.add("all_classes", func(r row) error {
		class, err := classOf(r)
		d.Classes = append(d.Classes, class)
		if since := r.time(7); since != 0 {
			d.Retired = append(d.Retired, store.RetiredClass{ID: class.ID, Since: since})
		}
		return err
	})
	t.add("all_rules", func(r row) error {
		d.Rules = append(d.Rules, docOf(r))
		return nil
	}, smallint(int16(store.FirstRule)))
	t.add("clock", func(r row) error {
		now, d.Version, d.Incarnation = r.time(0), r.bigint(1), r.text(2)
		return nil
	})
	t.add("log_identity", func(r row) error {
		logID = r.uuid(0)
		return nil
	})
	t.add("commit", nil)
	if err := t.run(ctx); err != nil {
		return nil, fault(err)
	}
	m := s.remembered(d.Incarnation)
	s.observe(m, now, d.Version)
	m.classes.add(d.Classes)
	s.logID.Store(&logID)
	return d, nil
}

// laneOf reads the columns of a lane.
func laneOf(r row) (core.Lane, error) {
	lane := core.Lane{ID: r.int(0), Name: r.text(1), Revision: r.bigint(3), Since: r.time(4), Counting: r.bool(5), RegisteredBy: r.text(6)}
	return lane, lane.ReadSettings(r[2])
}

func laneNumbers(lanes []core.Lane) []byte {
	id := ints(len(lanes))
	for _, lane := range lanes {
		id.int(lane.ID)
	}
	return id.argument()
}

// laneColumns returns the columns that may change.
func laneColumns(lanes []core.Lane) [][]byte {
	n := len(lanes)
	settings, revision, since, counting, by := texts(n), bigints(n), bigints(n), bools(n), texts(n)
	for _, lane := range lanes {
		settings.text(string(core.EncodeLaneSettings(lane.Settings)))
		revision.bigint(lane.Revision)
		since.time(lane.Since)
		counting.bool(lane.Counting)
		by.text(lane.RegisteredBy)
	}
	return arguments(settings, revision, since, counting, by)
}

// Register adds the missing lanes and classes in a transaction of its own.
func (s *Store) Register(ctx context.Context, lanes []core.Lane, classes []core.Class) (store.Registered, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return store.Registered{}, err
	}
	defer conn.Release()
	var version int64
	var m *memory
	names, digests := namesOf(lanes), digestsOf(classes)
	foundLanes, foundClasses := map[string]core.Lane{}, map[string]*core.Class{}
	t := s.trip(conn)
	t.settings(patient)
	t.add("register", func(r row) error { version = r.bigint(0); return nil }, registerColumns(lanes, classes, digests)...)
	t.add("registered_lanes", func(r row) error {
		lane, err := laneOf(r)
		foundLanes[lane.Name] = lane
		return err
	}, textColumn(names))
	t.add("registered_classes", func(r row) error {
		class, err := classOf(r)
		foundClasses[r.text(7)] = class
		return err
	}, counterColumn(digests))
	t.add("clock", func(r row) error {
		m = s.remembered(r.text(2))
		s.observe(m, r.time(0), r.bigint(1))
		return nil
	})
	if err := t.run(ctx); err != nil {
		return store.Registered{}, commitFault(err, true)
	}
	answer, err := m.registered(names, digests, foundLanes, foundClasses)
	answer.Version, answer.Incarnation = version, m.incarnation
	return answer, err
}

// registered sorts what was found into the order of the request.
func (m *memory) registered(names, digests []string, lanes map[string]core.Lane, classes map[string]*core.Class) (store.Registered, error) {
	answer := store.Registered{Lanes: make([]core.Lane, len(names)), Classes: make([]*core.Class, len(digests))}
	for i, name := range names {
		answer.Lanes[i] = lanes[name]
	}
	for i, digest := range digests {
		if answer.Classes[i] = classes[digest]; answer.Classes[i] == nil {
			return store.Registered{}, &store.Fault{Kind: store.Retry, Err: errClassGone}
		}
	}
	m.classes.add(answer.Classes)
	return answer, nil
}

var errClassGone = errors.New("a class was removed while it was registered")

func namesOf(lanes []core.Lane) []string {
	names := make([]string, len(lanes))
	for i, lane := range lanes {
		names[i] = lane.Name
	}
	return names
}

func digestsOf(classes []core.Class) []string {
	digests := make([]string, len(classes))
	for i := range classes {
		digests[i] = digestOf(&classes[i])
	}
	return digests
}

// digestOf identifies a class by everything that defines it. Digests are stored: that of a class that needs nothing has one part, all others have
// two.
func digestOf(c *core.Class) string {
	var data []byte
	parts := append([]string{c.Namespace, c.Lane, c.Kind, c.FairnessKey}, c.Capabilities...)
	for _, part := range parts {
		data = binary.AppendUvarint(data, uint64(len(part)))
		data = append(data, part...)
	}
	sum := sha256.Sum256(data)
	if c.Needs == "" {
		return string(sum[:])
	}
	needs := sha256.Sum256([]byte(c.Needs))
	return string(append(sum[:], needs[:]...))
}

// registerColumns lists each lane and class once: one statement may insert a row only once.
func registerColumns(lanes []core.Lane, classes []core.Class, digests []string) [][]byte {
	var once []core.Lane
	seen := map[string]bool{}
	for _, lane := range lanes {
		if !seen[lane.Name] {
			seen[lane.Name] = true
			once = append(once, lane)
		}
	}
	n := len(classes)
	digest, namespace, lane, kind, capabilities, fairness, needs := blobs(n), texts(n), texts(n), texts(n), texts(n), texts(n), texts(n)
	for i := range classes {
		if c := &classes[i]; !seen[digests[i]] {
			seen[digests[i]] = true
			digest.text(digests[i])
			namespace.text(c.Namespace)
			lane.text(c.Lane)
			kind.text(c.Kind)
			capabilities.text(strings.Join(c.Capabilities, ",")) // no token contains a comma (S10)
			fairness.text(c.FairnessKey)
			needs.text(c.Needs)
		}
	}
	return append(append([][]byte{textColumn(namesOf(once))}, laneColumns(once)...),
		arguments(digest, namespace, lane, kind, capabilities, fairness, needs)...)
}
