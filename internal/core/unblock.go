package core

// Unblock sends an execution that is blocked by admission on a key which is gone through the gate (S47), and reports whether it was.
func (x *Execution) Unblock(fx *Effects, gone func(key string) bool) bool {
	if !x.blockedByAdmission() || !gone(x.BlockedOn) {
		return false
	}
	x.pass(fx, "")
	return true
}
