package core

// Unblock sends an execution that is blocked by admission on a deleted key through the gate (S47), and reports whether it did.
func (x *Execution) Unblock(fx *Effects, gone func(key string) bool) bool {
	if !x.blockedByAdmission() || !gone(x.BlockedOn) {
		return false
	}
	x.pass(fx, "")
	return true
}
