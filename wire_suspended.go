package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of links, and of what waits for people (U84, U85).

// MarshalJSON writes the link as lists of the HTTP API show it, without its address (U84).
func (l ApprovalLink) MarshalJSON() ([]byte, error) {
	w := l.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, with the address where an answer has it.
func (l *ApprovalLink) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.IssuedLink](text)
	*l = issuedLinkFrom(w)
	return err
}

func (l ApprovalLink) wire() wire.Link {
	return wire.Link{
		LinkID: l.ID, WaitpointID: l.WaitpointID, ExecutionID: string(l.ExecutionID), Approver: l.Approver, Title: l.Title, Message: l.Message,
		Decisions: each(l.Choices, LinkChoice.wire), CommentRequired: l.CommentRequired, State: l.State, CreatedAt: wireTime(l.CreatedAt),
		ExpiresAt: wireTime(l.ExpiresAt), Decision: l.Decision, Comment: l.Comment, DecidedAt: wireTime(l.DecidedAt),
	}
}

func (c LinkChoice) wire() wire.LinkChoice { return wire.LinkChoice(c) }

func choiceFrom(w wire.LinkChoice) LinkChoice { return LinkChoice(w) }

func linkFrom(w wire.Link) ApprovalLink {
	return ApprovalLink{
		ID: w.LinkID, WaitpointID: w.WaitpointID, ExecutionID: ID(w.ExecutionID), Approver: w.Approver, Title: w.Title, Message: w.Message,
		Choices: noneIfEmpty(each(w.Decisions, choiceFrom)), State: w.State, CreatedAt: w.CreatedAt.Time, ExpiresAt: w.ExpiresAt.Time,
		Decision: w.Decision, Comment: w.Comment, DecidedAt: w.DecidedAt.Time, CommentRequired: w.CommentRequired,
	}
}

// issuedLinkFrom is a link with its address.
func issuedLinkFrom(w *wire.IssuedLink) ApprovalLink {
	link := linkFrom(w.Link)
	link.URL = w.URL
	return link
}

// MarshalJSON writes the entry as the HTTP API shows it (U85).
func (s Suspended) MarshalJSON() ([]byte, error) {
	w := wire.Suspended{
		SuspensionID: s.SuspensionID, SuspendedAt: wireTime(s.SuspendedAt), TimeoutAt: wireTime(s.TimeoutAt), ExpiresAt: wireTime(s.TimeoutAt),
		ReasonCode: s.ReasonCode, Needed: s.Needed, Waitpoints: make([]wire.Waitpoint, len(s.Waitpoints)),
		Progress: each(s.Progress, NodeProgress.wire), Links: each(s.Links, ApprovalLink.wire),
		Decisions: each(s.Decisions, PersonalDecision.wire),
	}
	for i := range s.Waitpoints {
		w.Waitpoints[i] = s.Waitpoints[i].wire()
	}
	if s.Execution != nil {
		w.ExecutionID, w.Execution = string(s.Execution.ID), s.Execution
		w.ExpiresAt = wireTime(earlierOf(s.TimeoutAt, s.Execution.DeadlineAt))
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *Suspended) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Suspended](text)
	*s = suspendedFrom(*w)
	return err
}

func suspendedFrom(w wire.Suspended) Suspended {
	s := Suspended{
		SuspensionID: w.SuspensionID, SuspendedAt: w.SuspendedAt.Time, TimeoutAt: w.TimeoutAt.Time, ReasonCode: w.ReasonCode,
		Waitpoints: each(w.Waitpoints, waitpointFrom), Progress: noneIfEmpty(each(w.Progress, progressFrom)), Links: each(w.Links, linkFrom),
		Decisions: each(w.Decisions, personalFrom), Needed: w.Needed, Execution: w.Execution,
	}
	return s
}

// MarshalJSON writes how far the part is, as the HTTP API shows it (U85).
func (n NodeProgress) MarshalJSON() ([]byte, error) { return wire.Marshal(n.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *NodeProgress) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.NodeProgress](text)
	*n = progressFrom(*w)
	return err
}

func (n NodeProgress) wire() wire.NodeProgress {
	return wire.NodeProgress{Node: n.Node.wire(), Progress: n.Progress, Needed: n.Needed}
}

func progressFrom(w wire.NodeProgress) NodeProgress {
	return NodeProgress{Node: conditionFrom(w.Node), Progress: w.Progress, Needed: w.Needed}
}

// MarshalJSON writes what was said, as the HTTP API shows it (U85).
func (d PersonalDecision) MarshalJSON() ([]byte, error) { return wire.Marshal(d.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (d *PersonalDecision) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.PersonalDecision](text)
	*d = personalFrom(*w)
	return err
}

func (d PersonalDecision) wire() wire.PersonalDecision {
	return wire.PersonalDecision{By: d.By, Decision: d.Decision, Comment: d.Comment, At: wireTime(d.At)}
}

func personalFrom(w wire.PersonalDecision) PersonalDecision {
	return PersonalDecision{By: w.By, Decision: w.Decision, Comment: w.Comment, At: w.At.Time}
}
