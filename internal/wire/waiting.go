package wire

import "encoding/json"

// NoSuspension is the answer about an execution that was never suspended in its present run.
type NoSuspension struct{}

// CommentIn is what somebody wrote with a decision (W65, W71); "" when there is nothing.
func CommentIn(payload []byte) string {
	var said struct {
		Comment string `json:"comment"`
	}
	if json.Unmarshal(payload, &said) != nil {
		return ""
	}
	return said.Comment
}
