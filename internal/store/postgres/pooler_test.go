package postgres

import (
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/store"
)

// Nobody says that there is a pooler: neither Pooled nor a direct address.
func TestReliability12_a_pooler_in_transaction_mode_is_recognised_and_served(t *testing.T) {
	t.Parallel()
	address := cluster.Pooler(t)(cluster.Database(t))
	for range 3 { // each finds sessions that the one before has used
		s, err := Open(t.Context(), address, Config{})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		c := newCycler(t, s, "default")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					c.submit(t, 2)
					if _, err := s.Dictionary(t.Context()); err != nil {
						t.Errorf("Dictionary: %v", err)
					}
					if _, err := s.TakeDue(t.Context(), 10, 1); err != nil {
						t.Errorf("TakeDue: %v", err)
					}
					if _, err := s.Find(t.Context(), store.Query{Limit: 5}); err != nil {
						t.Errorf("Find: %v", err)
					}
				}
			})
		}
		wg.Wait()
		c.cycle(t, 10)
		if err := s.Maintain(t.Context(), 0); err != nil {
			t.Errorf("Maintain: %v", err)
		}
		if err := s.Scrub(t.Context(), func(what error) { t.Errorf("damaged: %v", what) }); err != nil {
			t.Errorf("Scrub: %v", err)
		}
		if !s.cfg.pooled() {
			t.Error("the pooler is not recognised")
		}
		CloseStore(t, s)
	}
}

func TestReliability12_a_server_itself_is_not_taken_for_a_pooler(t *testing.T) {
	t.Parallel()
	if s, _ := open(t, Config{}); s.cfg.pooled() {
		t.Fatal("there is none")
	}
}
