package healthcache

import (
	"strings"
	"time"
)

// post is what passes between an own result and the health key, while this
// instance holds the lease.
type post struct {
	// state and since are what the key last said, in its words, so that
	// "since" stays the same to the digit while the state does.
	state State
	since string

	written  string // signature of the record that this instance wrote; empty: none
	due      bool   // an own result waits to be written
	renew    bool   // an own result says what was written, at a later time
	renewing bool   // the renewal is under way

	mended time.Time // when a record that could not be read was last written anew
}

// read notes what the key says. If that is not what this instance wrote, it is
// somebody else's word, which is neither to be renewed nor to stand: others may
// have read it too.
func (p *post) read(s Status) {
	p.state, p.since = s.State, s.Since.UTC().Format(timeLayout)
	if p.written != "" && p.written != signature(s) {
		p.rewrite()
	}
}

// rewrite has the record written anew, and told as news.
func (p *post) rewrite() { p.due, p.written = true, "" }

// mend has a record that cannot be read written anew: Redis's clock may have gone
// back behind what it was written by. Where that does not help, since Redis's clock
// is absurd or somebody else writes it too, it is not done with every look: to all
// others it is news.
func (p *post) mend(now time.Time, life time.Duration) {
	if now.Sub(p.mended) >= life {
		p.mended = now
		p.rewrite()
	}
}

// constant is the record that this instance wrote, without what a renewal changes.
func (p *post) constant() string {
	return `{"state":"` + string(p.state) + `","since":"` + p.since + `",` + strings.TrimPrefix(p.written, string(p.state))
}

// signature is what makes a record news: all but its dates and durations.
func signature(s Status) string {
	s.RTT = 0
	return string(s.State) + encodeTail(s)
}

// note decides what becomes of an own result: nothing while a second probe is
// still to confirm it; a renewal of the record that says the same; or a record.
func (k *knowledge) note(now time.Time) {
	switch {
	case k.history.state == Suspect:
	case signature(k.record(now).status) == k.post.written:
		k.post.renew = true
	default:
		k.post.due = true
	}
}

// renewal is the constant part of the record if it is to be renewed, else empty.
func (k *knowledge) renewal() string {
	k.post.renewing = k.post.renew && !k.post.due
	k.post.renew = false
	if !k.post.renewing {
		return ""
	}
	return k.post.constant()
}

// tended takes in what became of the lease and of the record.
func (k *knowledge) tended(t tending) {
	if !t.held {
		k.lose()
		return
	}
	if k.post.renewing && !t.renewed {
		k.post.rewrite() // somebody else wrote it, or deleted it
	}
	k.post.renewing = false
}

// lose notes that the lease is another's, or nobody's, with the record.
func (k *knowledge) lose() {
	k.lease = false
	k.post = post{state: k.post.state, since: k.post.since}
}

// record is the own result as the health key shall hold it. A death that no
// witness has confirmed is a suspicion.
func (k *knowledge) record(now time.Time) report {
	s := k.own.status
	if s.State == Down && k.verdict != agreed {
		s.State = Suspect
	}
	if k.drain.stands(now) {
		s = k.drain.hide(s)
	}
	r := report{shard: k.shard, status: s, age: max(now.Sub(s.Since), 0)}
	if k.post.state == s.State {
		r.since = k.post.since
	}
	return r
}
