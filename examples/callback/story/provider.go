package story

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// provider stands for a payment provider: it can be given an address, and posts there what became of a payment.
type provider struct{ http *http.Client }

// answer is what FlowFabric says to a callback.
type answer struct {
	Status  int
	Outcome string
	Effect  string
	Code    string // of a refusal
}

// String tells it in one line.
func (a answer) String() string {
	if a.Code != "" {
		return fmt.Sprintf("%d %s", a.Status, a.Code)
	}
	return fmt.Sprintf("%d %s, %s", a.Status, a.Outcome, a.Effect)
}

// tell posts that a payment was made. Providers name each message, and post it again when they are not sure that it arrived.
func (p provider) tell(ctx context.Context, callback, message string, paid Payment) (a answer, err error) {
	body, err := json.Marshal(paid)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, callback+"?name=paid", strings.NewReader(string(body)))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", message)
	response, err := p.http.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.Status = response.StatusCode
	return a, json.NewDecoder(response.Body).Decode(&a)
}
