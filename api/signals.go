package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Signal is something that happened outside, for work that waits. Token is the credential. JSON has what happened, without where it goes.
type Signal struct {
	WaitpointID string `json:"-" apart:"true"`
	Token       Token  `json:"-" apart:"true"`
	ExecutionID ID     `json:"-" apart:"true"` // "": not compared

	Name           string    `json:"name" required:"true" maxLength:"128" doc:"What happened."`
	Payload        Payload   `json:"payload,omitempty" spread:"sent" doc:"The payload."`                            // at most 256 KiB
	Category       *string   `json:"category,omitempty" maxLength:"64" doc:"Kind of signal; external if absent."`   // nil: external
	SourceType     string    `json:"source_type,omitempty" maxLength:"64" doc:"What sends it; external if absent."` // "": external
	SourceIdentity string    `json:"source_identity,omitempty" maxLength:"256" doc:"Who sends it, by its own word."`
	CorrelationID  string    `json:"correlation_id,omitempty" maxLength:"128" doc:"Ties it to something outside."`
	IdempotencyKey string    `json:"idempotency_key,omitempty" doc:"The same signal again is a duplicate."`                        // the same signal again is a duplicate
	SignalID       string    `json:"signal_id,omitempty" doc:"UUID of the signal, which also tells duplicates; minted if absent."` // "": minted; the same again is a duplicate
	SentAt         time.Time `json:"sent_at,omitzero" doc:"When it happened, by the sender's clock."`
}

// MarshalJSON writes the signal as the HTTP API takes it, without where it goes.
func (s Signal) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads a signal as strictly as the HTTP API does.
func (s *Signal) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
