package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// message is the wire form of a hint. It is short, because a notification holds less than 8000 bytes.
type message struct {
	From       string      `json:"f"` // the store that sent it, which ignores it
	Lanes      []string    `json:"l,omitempty"`
	Named      bool        `json:"n,omitempty"` // older processes that do not know this field and the next treat all of the lanes as meant
	Classes    []int32     `json:"c,omitempty"`
	Log        bool        `json:"g,omitempty"`
	Dictionary bool        `json:"d,omitempty"`
	Inbox      bool        `json:"i,omitempty"`
	Keys       []string    `json:"k,omitempty"`
	Blocked    bool        `json:"b,omitempty"`
	Streams    []base.UUID `json:"s,omitempty"`
	AllStreams bool        `json:"a,omitempty"`
}

// lanesPerMessage keeps a message short enough: a lane's name has at most 64 bytes, each at most six bytes in JSON.
const lanesPerMessage = 18

// classesPerMessage leaves room for lanes and keys: a number has at most ten digits.
const classesPerMessage = 256

// longestMessage is the maximum size of a notification.
const longestMessage = 7999

// payload returns the text of the message. If the keys do not fit, it states that any key may be meant, and likewise for the classes.
func (m *message) payload() []byte {
	text, _ := json.Marshal(m) // texts, numbers and booleans always marshal
	if len(text) > longestMessage && len(m.Streams) > 0 {
		m.Streams, m.AllStreams = nil, true
		text, _ = json.Marshal(m)
	}
	if len(text) > longestMessage && len(m.Keys) > 0 {
		m.Keys = []string{store.AnyKey}
		text, _ = json.Marshal(m)
	}
	if len(text) > longestMessage {
		m.Named, m.Classes = false, nil
		text, _ = json.Marshal(m)
	}
	return text
}

// cut limits the message to as many lanes and classes as fit, and returns the rest for the next message; false if there is none.
func (m *message) cut() (rest message, more bool) {
	lanes, classes := min(len(m.Lanes), lanesPerMessage), min(len(m.Classes), classesPerMessage)
	rest = message{From: m.From, Named: m.Named, Lanes: m.Lanes[lanes:], Classes: m.Classes[classes:]}
	m.Lanes, m.Classes = m.Lanes[:lanes], m.Classes[:classes]
	rest.Blocked = m.Blocked && len(rest.Classes) > 0
	return rest, len(rest.Lanes)+len(rest.Classes) > 0
}

// hint returns the content of the message.
func (m *message) hint() store.Hint {
	return store.Hint{Lanes: m.Lanes, Named: m.Named, Classes: m.Classes, Log: m.Log, Dictionary: m.Dictionary, Inbox: m.Inbox, Keys: m.Keys, Blocked: m.Blocked, Streams: m.Streams, AllStreams: m.AllStreams}
}

// How long the listener waits before it connects again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// channel is the notification channel of the processes on this database.
func (s *Store) channel() string { return channelOf(s.info.Installation) }

func (g *externalTx) channel() string { return channelOf(g.installation) }

func channelOf(installation base.UUID) string { return "flowfabric_" + installation.String()[:8] }

// commitNote is the hint that a user's own transaction sends with its commit: every process looks at the inbox, also the one of the transaction.
// Postgres sends equal notifications of a transaction once.
func commitNote() string {
	m := message{From: "tx", Inbox: true}
	return string(m.payload())
}

// Notify sends a hint to every process on this database.
func (s *Store) Notify(ctx context.Context, hint store.Hint) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	m := message{
		From: s.name, Lanes: hint.Lanes, Named: hint.Named, Classes: hint.Classes, Log: hint.Log, Dictionary: hint.Dictionary, Inbox: hint.Inbox, Keys: hint.Keys, Blocked: hint.Blocked,
		Streams: hint.Streams, AllStreams: hint.AllStreams,
	}
	return fault(s.alone(ctx, func(t *trip) {
		for more := true; more; {
			var rest message
			rest, more = m.cut()
			t.add("notify", nil, text(s.channel()), m.payload())
			m = rest
		}
	}))
}

// Listen receives hints on a connection of its own until ctx ends. Behind a pooler without a direct address it only waits: the poll finds
// everything too, a little later.
func (s *Store) Listen(ctx context.Context, hear func(store.Hint)) error {
	if s.cfg.pooled() && s.cfg.DirectURL == "" {
		<-ctx.Done()
		return nil
	}
	pause := firstPause
	for again := false; ctx.Err() == nil; again = true {
		heard, err := s.listen(ctx, again, hear)
		if ctx.Err() != nil {
			break
		}
		if heard {
			pause = firstPause
		}
		s.notes.Warn("hints are not heard until the connection is back", "error", err, "again_in", pause)
		timer := s.cfg.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, lastPause)
	}
	return nil
}

// endListening ends the session of a listener. A session that is kept for another store receives no more notifications, and those already received
// are discarded.
func (s *Store) endListening(ctx context.Context, conn *pgx.Conn) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if s.cfg.Kept == nil {
		_ = conn.Close(closing)
		return
	}
	if _, err := conn.Exec(closing, "unlisten *"); err != nil {
		_ = conn.Close(closing)
		return
	}
	cancel()
	for heard := error(nil); heard == nil; { // what has already arrived; does not wait
		_, heard = conn.WaitForNotification(closing)
	}
	s.leave(closing, conn)
}

// listen receives hints until its connection breaks. After an interruption it first reports the hint that anything may have happened.
func (s *Store) listen(ctx context.Context, again bool, hear func(store.Hint)) (heard bool, err error) {
	connecting, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.session(connecting)
	if err != nil {
		return false, err
	}
	defer s.endListening(ctx, conn)
	if err := s.limit(connecting, conn); err != nil {
		return false, err
	}
	// Quoted: unquoted, it is what tells programs from before they were listed (older_programs).
	if _, err := conn.Exec(connecting, "listen "+quoted(s.channel())); err != nil {
		return false, err
	}
	if again {
		hear(store.Hint{AllLanes: true, Log: true, Dictionary: true, Inbox: true, Keys: []string{store.AnyKey}, Blocked: true})
	}
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		var m message
		if json.Unmarshal([]byte(notification.Payload), &m) == nil && m.From != s.name {
			hear(m.hint())
		}
	}
}
