package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU157_an_address_of_another_program_is_named_as_such(t *testing.T) {
	t.Parallel()
	lost := api.Errorf("timeout", "the connection was lost: %w", errors.New(`malformed HTTP response "SSH-2.0-x"`))
	var refusal *flowfabric.Error
	if err := unanswered(lost, "http://db"); !errors.As(err, &refusal) || !strings.Contains(refusal.Hint, "--server") || !strings.HasSuffix(refusal.Hint, "http://db") {
		t.Errorf("%+v", refusal)
	}
	unknown := api.Errorf("timeout", "the connection was lost")
	if err := unanswered(unknown, "http://db"); !errors.Is(err, unknown) || unknown.Hint != "" {
		t.Error(err)
	}
}
