package wire

import "strings"

// Role is a set of roles (U122). As the roles of an operation it means that any of these can call it.
type Role uint8

// Roles. Open, Any and Token mean that an operation needs no role: Open no credential, Any any valid one, Token the token of its
// subject, and other credentials are ignored.
const (
	Read Role = 1 << iota
	Submit
	Work
	Operate
	Admin
	Open
	Any
	Token
)

// roleNames are the names of roles in API keys and problems, in the order of their bits.
var roleNames = [...]string{"read", "submit", "work", "operate", "admin", "open", "any", "token"}

// Names returns the names of the roles in the set.
func (r Role) Names() []string {
	names := []string{}
	for i, name := range roleNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String joins the names.
func (r Role) String() string { return strings.Join(r.Names(), " ") }

// RoleNamed returns the role with this name: read, submit, work, operate or admin.
func RoleNamed(name string) (Role, bool) {
	for i, known := range roleNames {
		if role := Role(1 << i); known == name && role <= Admin {
			return role, true
		}
	}
	return 0, false
}

// Held returns everything that a key with these roles can do: operate includes read, admin all.
func (r Role) Held() Role {
	if r&Admin != 0 {
		r |= Read | Submit | Work | Operate
	}
	if r&Operate != 0 {
		r |= Read
	}
	return r
}

// Condition limits what a role can do with an operation.
type Condition uint8

// Conditions.
const (
	Always        Condition = iota
	OwnWork                 // executions and flows that this key submitted (U122)
	OwnListed               // a list of what this key submitted (U122)
	OwnEvents               // events of an execution or a flow that this key submitted (U43, U91)
	OwnFeed                 // events of an instance that this key registered, about what it works on (U106)
	OwnLanes                // executions in the lanes of this key, and their children; all if it lists none (U122)
	LeasedInLanes           // with an execution that an instance of this key holds, in a lane of the key; any if it lists none (U98)
	WithLease               // with the lease of the execution (U45)
	OwnInstance             // the instance that this key registered (U103)
	WithOverride            // with "override": true (U68, U69)
	NoRemoval               // bulk actions other than retain and delete, which need admin (U57)
	AllNamespaces           // a key for * (U122)
	SharedThings            // a key for *, or for the only namespace (U121)
)
