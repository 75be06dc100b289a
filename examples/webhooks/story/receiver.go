package story

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxBody bounds what the receiver reads. Events have no payloads, so they are small.
const maxBody = 1 << 20

// message is the body of a webhook.
type message struct {
	Type string    `json:"type"`
	At   time.Time `json:"timestamp"`
	Data struct {
		Cursor      string `json:"cursor"`
		ExecutionID string `json:"execution_id"`
	} `json:"data"`
}

// received is what the receiver says of one request.
type received struct {
	id string // of the message
	message
	again bool // it has had the message before
}

// receiver takes webhooks. A real one would keep the ids in its database, in the transaction in which it handles the message.
type receiver struct {
	heard chan received

	mu      sync.Mutex
	secrets []string // one, or two while one replaces the other
	known   map[string]bool
}

func newReceiver() *receiver {
	return &receiver{heard: make(chan received, 16), known: map[string]bool{}}
}

// trust adds a secret.
func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, secret)
}

// forget keeps the newest secret alone.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = r.secrets[len(r.secrets)-1:]
}

// ServeHTTP verifies a message, remembers its id, and answers at once: what takes longer than 15 seconds counts as failed and comes again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if err != nil {
		http.Error(w, "the message is too long", http.StatusRequestEntityTooLarge)
		return
	}
	var m message
	if !r.verified(request.Header, body) || json.Unmarshal(body, &m) != nil {
		http.Error(w, errForged.Error(), http.StatusUnauthorized)
		return
	}
	id := request.Header.Get("webhook-id")
	r.heard <- received{id: id, message: m, again: r.seen(id)}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) verified(h http.Header, body []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range r.secrets {
		if verify(secret, h, body, time.Now()) == nil {
			return true
		}
	}
	return false
}

// seen reports whether the message came before, and remembers it.
func (r *receiver) seen(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known[id]
	r.known[id] = true
	return before
}

// handled is how many different messages have come.
func (r *receiver) handled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}
