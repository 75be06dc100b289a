package stream

// object is a JSON object that is being changed. Its members stand in the order in which they were first set; one that was removed and is set again stands
// last. Looking up, setting and removing a member takes constant time on average.
type object struct {
	members []member
	index   map[string]int // place of each name among the members; nil until it is worth making
	lookups int            // since there is no index
	live    int            // members that were not removed
	size    int            // bytes of the members' texts, without commas
}

// member is a name and its value. A removed one has the zero value.
type member struct {
	name  string // as it is written, with quotes and the fewest escapes
	value value
}

// value is a text, or an object that is being changed.
type value struct {
	text   string
	object *object
}

// Above this number of members an object gets an index, when it was searched so many times.
const (
	indexedMembers = 8
	indexedLookups = 4
)

func (v value) removed() bool { return v.object == nil && v.text == "" }

func (v value) isObject() bool { return v.object != nil || v.text != "" && v.text[0] == '{' }

func (v value) length() int {
	if v.object != nil {
		return v.object.length()
	}
	return len(v.text)
}

// length is the number of bytes of the text of o.
func (o *object) length() int { return 2 + o.size + max(0, o.live-1) }

// find returns the place of a name; -1: it was never set.
func (o *object) find(name string) int {
	if o.index == nil && len(o.members) > indexedMembers {
		if o.lookups++; o.lookups > indexedLookups {
			o.makeIndex()
		}
	}
	if o.index != nil {
		if at, ok := o.index[name]; ok {
			return at
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].name == name {
			return i
		}
	}
	return -1
}

func (o *object) makeIndex() {
	o.index = make(map[string]int, len(o.members))
	for i := range o.members {
		o.index[o.members[i].name] = i
	}
}

// set gives a name a value.
func (o *object) set(name string, v value) {
	at := o.find(name)
	if at >= 0 && !o.members[at].value.removed() {
		o.size += v.length() - o.members[at].value.length()
		o.members[at].value = v
		return
	}
	if at >= 0 {
		o.members[at].name = "" // its new place is the last one; no name is empty
	}
	o.push(name, v)
}

// push adds a member whose name o does not have.
func (o *object) push(name string, v value) {
	if o.index != nil {
		o.index[name] = len(o.members)
	}
	o.members = append(o.members, member{name: name, value: v})
	o.live++
	o.size += len(name) + 1 + v.length()
}

func (o *object) remove(name string) {
	at := o.find(name)
	if at < 0 || o.members[at].value.removed() {
		return
	}
	o.size -= len(name) + 1 + o.members[at].value.length()
	o.members[at].value = value{}
	o.live--
	if removed := len(o.members) - o.live; removed > indexedMembers && removed > o.live {
		o.compact()
	}
}

// compact forgets the removed members.
func (o *object) compact() {
	kept := o.members[:0]
	for _, m := range o.members {
		if !m.value.removed() {
			kept = append(kept, m)
		}
	}
	clear(o.members[len(kept):])
	o.members, o.index, o.lookups = kept, nil, 0
}

// merge applies an RFC 7396 merge patch to o, which takes over the values of the patch.
func (o *object) merge(patch *object) {
	for i := range patch.members {
		m := &patch.members[i]
		switch {
		case m.value.text == "null":
			o.remove(m.name)
		case m.value.object == nil:
			o.set(m.name, m.value)
		default:
			o.mergeMember(m.name, m.value.object)
		}
	}
}

// mergeMember merges an object into a member, which becomes an object where it is none.
func (o *object) mergeMember(name string, patch *object) {
	at := o.find(name)
	if at < 0 || !o.members[at].value.isObject() {
		child := &object{}
		child.merge(patch)
		o.set(name, value{object: child})
		return
	}
	v := &o.members[at].value
	before := v.length()
	if v.object == nil {
		*v = value{object: readStored(v.text)}
	}
	v.object.merge(patch)
	o.size += v.length() - before
}

// appendText writes o.
func (o *object) appendText(to []byte) []byte {
	to = append(to, '{')
	first := true
	for i := range o.members {
		m := &o.members[i]
		if m.value.removed() {
			continue
		}
		if !first {
			to = append(to, ',')
		}
		first = false
		to = append(append(to, m.name...), ':')
		if m.value.object != nil {
			to = m.value.object.appendText(to)
		} else {
			to = append(to, m.value.text...)
		}
	}
	return append(to, '}')
}
