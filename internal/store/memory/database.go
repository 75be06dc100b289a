package memory

import (
	"bytes"
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Config sets up a Database. Its zero value is a useful one.
type Config struct {
	Clock clock.Clock      // of the waits for locks; nil: the host's
	Now   func() base.Time // the database's clock; nil: that of Clock
	Seed  uint64           // of the random bits of versions and of the identities
}

// Process is what a process brings with it when it opens a database. Its zero value is a useful one.
type Process struct {
	Clock clock.Clock // the host's clock; nil: that of the database
	// Gate is called by its transactions where others may act before they go on. No lock of the database itself is held. Nil: they go on at once.
	Gate func(Point)
}

// Point is a place at which a transaction passes the gate.
type Point uint8

// The points of a transaction.
const (
	Waited Point = iota // it has waited for a row, and got the row or not
	Drawn               // its position in the log is drawn, and nothing of it is visible yet
)

// Database is what the processes on it share, and what survives them.
type Database struct {
	cfg      Config
	mu       sync.Mutex
	rows     *image
	random   *rand.Rand
	locks    map[store.Lock]*rowLock
	picked   map[store.QueueRow]*holder // queue rows that a Pick has locked
	stores   []*Store
	policies store.Policies
}

// image is the content of the database at one moment. Rows are immutable and replaced by others.
type image struct {
	installation base.UUID
	logID        base.UUID
	incarnation  int

	version    int64
	lanes      []core.Lane
	classes    []*core.Class
	retired    map[int32]base.Time
	lastClass  int32
	dictionary *store.Dictionary // of the version; nil: to be built

	executions map[base.UUID]*store.Row
	history    map[base.UUID][]*store.HistoryRow // by epoch
	queues     map[queueKey][]store.QueueRow     // in order
	keys       map[store.Key]store.KeyRow
	docs       map[store.Owned][]store.Doc // by key
	counters   map[string]int64
	timers     []*timerRow // by number
	lastTimer  int64
	inbox      []store.InboxRow
	log        []logRow
	logStart   int64
	logOpen    int // positions that are drawn and not decided
	search     map[base.UUID]*searchRow
	projected  int64
	mentions   map[base.UUID][]int64
	indexed    int64
}

type queueKey struct{ class, block int32 }

// New makes an empty database.
func New(cfg Config) *Database {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Now == nil {
		cfg.Now = func() base.Time { return base.TimeOf(cfg.Clock.Now()) }
	}
	d := &Database{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 1)), //nolint:gosec // G404: a seed makes the store deterministic
		locks: map[store.Lock]*rowLock{}, picked: map[store.QueueRow]*holder{},
	}
	d.rows = &image{
		installation: d.uuid(), logID: d.uuid(), incarnation: 1, version: 1, retired: map[int32]base.Time{},
		executions: map[base.UUID]*store.Row{}, history: map[base.UUID][]*store.HistoryRow{}, queues: map[queueKey][]store.QueueRow{},
		keys: map[store.Key]store.KeyRow{}, docs: map[store.Owned][]store.Doc{}, counters: map[string]int64{}, search: map[base.UUID]*searchRow{},
		mentions: map[base.UUID][]int64{},
	}
	return d
}

func (d *Database) uuid() base.UUID {
	var random [10]byte
	for i := range random {
		random[i] = byte(d.random.Uint32())
	}
	return base.MintUUID(d.cfg.Now(), random)
}

// Image is the content of a database at one moment, for Fall.
type Image struct{ rows *image }

// Image copies what is committed.
func (d *Database) Image() Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Image{d.rows.clone()}
}

// Fall resets the database to an image, as a failover to a standby that was behind does: later commits are lost, open transactions are ended, and
// the database has another incarnation.
func (d *Database) Fall(to Image) {
	d.mu.Lock()
	defer d.mu.Unlock()
	incarnation := d.rows.incarnation
	d.rows = to.rows.clone()
	d.rows.incarnation = incarnation + 1
	for _, s := range d.stores {
		s.breakOff()
	}
}

func (m *image) name() string { return m.installation.String() + "/" + strconv.Itoa(m.incarnation) }

func (m *image) clone() *image {
	n := *m
	n.lanes, n.classes, n.retired = slices.Clone(m.lanes), slices.Clone(m.classes), maps.Clone(m.retired)
	n.executions, n.keys, n.counters = maps.Clone(m.executions), maps.Clone(m.keys), maps.Clone(m.counters)
	n.mentions = maps.Clone(m.mentions)
	n.history, n.queues, n.docs = cloneLists(m.history), cloneLists(m.queues), cloneLists(m.docs)
	n.inbox, n.log, n.search = slices.Clone(m.inbox), slices.Clone(m.log), maps.Clone(m.search)
	n.timers = make([]*timerRow, len(m.timers))
	for i, t := range m.timers {
		timer := *t
		n.timers[i] = &timer
	}
	for i := range n.log { // a number that was drawn and not committed is lost with its transaction
		if n.log[i].state == drawn {
			n.log[i].state = void
		}
	}
	n.logOpen = 0
	return &n
}

func cloneLists[K comparable, V any](lists map[K][]V) map[K][]V {
	n := make(map[K][]V, len(lists))
	for key, list := range lists {
		n[key] = slices.Clone(list)
	}
	return n
}

func compareUUIDs(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) }

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Space, b.Space))
}

func compareRefs(a, b store.DocRef) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
}

// sorted returns the values in order, each once.
func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	list = slices.Clone(list)
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
