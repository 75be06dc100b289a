// Command testing runs a user's own test suite: a handler that takes two weeks is tested in milliseconds, and once more for every
// point at which the process may die. The suite is trial_test.go; go test ./examples/testing runs it too.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/flowfabric/flowfabric/examples/stage"
)

// storeVariable names the store of the test that does not make one for itself. It must hold nothing else: the clock stands elsewhere.
const storeVariable = "TEST_STORE"

// suite is the package whose tests are the story.
const suite = "github.com/flowfabric/flowfabric/examples/testing"

func main() {
	stage.Main(stage.Story{Name: "testing", Tell: func(ctx context.Context, s *stage.Stage) error {
		if s.Server != "" {
			return &stage.Misuse{Text: "tests turn the clock of their engine, which a server would not like: give -store, or nothing"}
		}
		s.Say("go test -v %s", suite)
		test := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", suite)
		test.Env = append(os.Environ(), storeVariable+"="+s.Store)
		test.Stdout, test.Stderr = s.Out, os.Stderr
		if err := test.Run(); err != nil {
			return fmt.Errorf("%w; run it in a clone of the repository", err)
		}
		return nil
	}})
}
