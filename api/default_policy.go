package api

import (
	"bytes"
	"reflect"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// DefaultPolicy is used for executions whose own policy does not say how they are retried: that of a lane by every submit to it,
// that of a worker by the attempts that it fails. The zero value says nothing.
//
// A default policy read from JSON keeps fields unknown to this version until a field is changed; the call that uses it checks it.
type DefaultPolicy struct {
	Retry *RetryPolicy // nil: nothing is said

	text []byte // the JSON it was read from, nil when it was not
}

// MarshalJSON writes the policy as the HTTP API accepts it.
func (p DefaultPolicy) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (p DefaultPolicy) AppendJSON(text []byte) ([]byte, error) {
	own, err := p.Text()
	if err != nil {
		return nil, err
	}
	return jsonx.AppendRaw(text, own)
}

// UnmarshalJSON reads a policy. Invalid values are refused by the call that uses it.
func (p *DefaultPolicy) UnmarshalJSON(text []byte) error {
	*p = defaultPolicyFrom(text)
	return nil
}

// ReadJSON reads the next value of a request or an answer.
func (p *DefaultPolicy) ReadJSON(d *jsonx.Decoder) { *p = defaultPolicyFrom(d.Bytes()) }

func defaultPolicyFrom(text []byte) DefaultPolicy {
	text = bytes.Clone(text)
	return DefaultPolicy{Retry: fieldsOf(text).Retry, text: text}
}

// Text returns the JSON of the policy for the rules to check; nil for no policy.
func (p *DefaultPolicy) Text() ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.text != nil && reflect.DeepEqual(p.Retry, fieldsOf(p.text).Retry):
		return p.text, nil
	}
	whole := Policy{Retry: p.Retry}
	return whole.Text()
}
