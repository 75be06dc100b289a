package quiescence_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/quiescence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAwaitReturnsWhenEveryMemberWaits(t *testing.T) {
	t.Parallel()
	const hops = 200
	family := quiescence.New()
	first := make(chan int)
	last := make(chan int, 1)
	family.Do(func() {
		from := first
		for range hops {
			to := make(chan int)
			go func(from <-chan int) {
				defer close(to)
				for n := range from {
					to <- n + 1
				}
			}(from)
			from = to
		}
		go func() {
			for n := range from {
				last <- n
			}
		}()
	})
	for range 20 {
		first <- 0
		if err := family.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-last:
			if n != hops {
				t.Fatalf("passed %d hands, want %d", n, hops)
			}
		default:
			t.Fatal("Await returned while the number was still on its way")
		}
	}
	close(first)
}

func TestTheGoroutineThatReceivesSignalsBelongsToNobody(t *testing.T) {
	t.Parallel()
	family := quiescence.New()
	signals := make(chan os.Signal, 1)
	family.Do(func() { signal.Notify(signals, syscall.SIGUSR2) })
	defer signal.Stop(signals)
	if err := family.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive := family.Alive(); len(alive) > 0 {
		t.Fatalf("left behind: %q", alive)
	}
}

func TestAwaitSeesChildrenOfMembersThatHaveEnded(t *testing.T) {
	t.Parallel()
	family := quiescence.New()
	release := make(chan struct{})
	var done sync.WaitGroup
	done.Add(1)
	family.Do(func() {
		go func() {
			defer done.Done()
			<-release
		}()
	})
	if err := family.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive := family.Alive(); len(alive) != 1 || !strings.Contains(alive[0], "chan receive") {
		t.Fatalf("Alive is %q, want the one goroutine that waits", alive)
	}
	close(release)
	done.Wait()
}

func TestAwaitSeesWhatWasStartedByMembersThatNoLookHasSeen(t *testing.T) {
	t.Parallel()
	family, stranger := quiescence.New(), quiescence.New()
	var mu sync.Mutex
	mu.Lock()
	var started, done sync.WaitGroup
	family.Do(func() {
		for range 100 { // the one in the middle ends at once: it is in no dump
			started.Add(1)
			done.Add(1)
			go func() {
				go func() {
					defer done.Done()
					started.Done()
					mu.Lock()
					mu.Unlock() //nolint:staticcheck // it only waits for the lock
				}()
			}()
		}
	})
	started.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err, alive := family.Await(ctx), len(family.Alive())
	apart := stranger.Await(ctx)
	mu.Unlock()
	done.Wait()
	if err == nil || alive < 100 {
		t.Errorf("%d of 100 goroutines that wait for a lock are seen: %v", alive, err)
	}
	if apart != nil {
		t.Errorf("another family counts them as its own: %v", apart)
	}
}

func TestAMemberThatAwaitsTheOthersDoesNotStandStill(t *testing.T) {
	t.Parallel()
	const rounds = 300
	family := quiescence.New()
	var over atomic.Bool
	var inner error
	asks := family.Go(func() {
		for range rounds {
			if inner = family.Await(t.Context()); inner != nil {
				break
			}
		}
		over.Store(true)
	})
	for !over.Load() {
		if err := family.Await(t.Context()); err != nil {
			t.Error(err)
			break
		}
		if !over.Load() {
			t.Error("Await returned while a member was looking")
			break
		}
	}
	<-asks
	if inner != nil {
		t.Error(inner)
	}
}

func TestAFamilyDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	busy, idle := quiescence.New(), quiescence.New()
	var mu sync.Mutex
	mu.Lock()
	locked := busy.Go(func() {
		mu.Lock()
		mu.Unlock() //nolint:staticcheck // it only waits for the lock
	})
	release := make(chan struct{})
	waits := idle.Go(func() { <-release })
	if err := idle.Await(t.Context()); err != nil {
		t.Error(err)
	}
	if alive := idle.Alive(); len(alive) != 1 {
		t.Errorf("Alive is %q, want the one goroutine that waits", alive)
	}
	mu.Unlock()
	close(release)
	<-locked
	<-waits
}

func TestAwaitDoesNotReturnDuringACall(t *testing.T) {
	t.Parallel()
	family := quiescence.New()
	begun, release := make(chan struct{}), make(chan struct{})
	failure := errors.New("the call's own")
	var got error
	called := family.Go(func() {
		got = family.During(func() error {
			close(begun)
			<-release // which looks like standing still
			return failure
		})
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := family.Await(ctx); err == nil || !strings.Contains(err.Error(), "TestAwaitDoesNotReturnDuringACall") {
		t.Errorf("Await gave %v, want an error that shows the goroutine in the call", err)
	}
	close(release)
	<-called
	if err := family.Await(t.Context()); err != nil || !errors.Is(got, failure) {
		t.Errorf("Await gave %v and the call %v, want nothing and %v", err, got, failure)
	}
}

func TestAwaitNamesWhoGoesOn(t *testing.T) {
	t.Parallel()
	family := quiescence.New()
	var mu sync.Mutex
	mu.Lock()
	var done sync.WaitGroup
	done.Add(1)
	family.Do(func() {
		go func() {
			defer done.Done()
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // it only waits for the lock
		}()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := family.Await(ctx)
	mu.Unlock()
	done.Wait()
	if err == nil || !strings.Contains(err.Error(), "TestAwaitNamesWhoGoesOn") {
		t.Fatalf("Await gave %v, want an error that shows the goroutine at the mutex", err)
	}
}
