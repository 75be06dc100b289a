package api

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// LinkPage is what a link shows to whoever holds it.
type LinkPage struct {
	ApprovalLink
	Kind      string            `json:"kind" doc:"Kind of the work."`
	Tags      map[string]string `json:"tags,omitempty" doc:"Tags of the work."`
	Asker     string            `json:"asker,omitempty" doc:"Who submitted the work."`
	Needed    int               `json:"needed,omitempty" doc:"How many must say the same; absent when it does not count."`           // 0: it does not count
	Counted   string            `json:"counted,omitempty" doc:"The name of the signal that they must send; absent when any counts."` // "": any
	Progress  int               `json:"progress,omitempty" doc:"So many have; absent when it does not count."`
	TimeoutAt time.Time         `json:"timeout_at,omitzero" doc:"When the work stops waiting."`
	Now       time.Time         `json:"server_time,omitzero" doc:"The store's clock."`

	// Refused is why it cannot be decided any more; nil: it can be, or is decided.
	Refused error `json:"-" apart:"true"`
}

// AppendJSON adds what MarshalJSON writes to a text.
func (p LinkPage) AppendJSON(text []byte) ([]byte, error) {
	written := struct {
		ApprovalLink
		Kind      string            `json:"kind"`
		Tags      map[string]string `json:"tags,omitempty"`
		Asker     string            `json:"asker,omitempty"`
		Needed    int               `json:"needed,omitempty"`
		Counted   string            `json:"counted,omitempty"`
		Progress  *int              `json:"progress,omitempty"` // 0 too, where it counts
		TimeoutAt time.Time         `json:"timeout_at,omitzero"`
		Now       time.Time         `json:"server_time,omitzero"`
	}{p.ApprovalLink, p.Kind, p.Tags, p.Asker, p.Needed, p.Counted, nil, p.TimeoutAt, p.Now}
	if p.Needed > 0 {
		written.Progress = &p.Progress
	}
	return jsonx.Append(text, &written)
}

// MarshalJSON writes the page as the HTTP API shows it.
func (p LinkPage) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *LinkPage) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// printableLinkPage is a page that may be printed: its link without methods, and without its address.
type printableLinkPage struct {
	ApprovalLink   printableLink
	Kind           string
	Tags           map[string]string
	Asker          string
	Needed         int
	Counted        string
	Progress       int
	TimeoutAt, Now time.Time
	Refused        error
}

func (p LinkPage) printable() printableLinkPage {
	return printableLinkPage{p.ApprovalLink.printable(), p.Kind, p.Tags, p.Asker, p.Needed, p.Counted, p.Progress, p.TimeoutAt, p.Now, p.Refused}
}

// Format prints the page without the address of the link, whatever the verb.
func (p LinkPage) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), p.printable())
}

// LogValue is the page without the address of the link.
func (p LinkPage) LogValue() slog.Value { return slog.AnyValue(p.printable()) }

// LinkDecision is what the holder of a link chose.
type LinkDecision struct {
	Decision string `json:"decision" doc:"Id of a decision that the link offers."`
	Comment  string `json:"comment,omitempty" maxLength:"4096" doc:"Why; some links require it."`
}

// LinkOutcome is the answer to a decision.
type LinkOutcome struct {
	Outcome   string    `json:"outcome" enum:"decided,already_decided" doc:"Whether this call decided."`
	Decision  string    `json:"decision" doc:"Id of what was decided."`
	DecidedAt time.Time `json:"decided_at,omitzero" doc:"When."`
	Effect    string    `json:"effect,omitempty" doc:"What the signal did; absent when it was decided before."` // "" when it was decided before
}

// MarshalJSON writes the outcome as the HTTP API shows it.
func (o LinkOutcome) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&o) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (o *LinkOutcome) UnmarshalJSON(text []byte) error { return readAnswer(text, o) }
