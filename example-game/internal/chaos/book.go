package chaos

import (
	"fmt"
	"sync"
)

// Book has what players were told of their gold. The zero value is empty. It is
// safe for use by several goroutines.
type Book struct {
	mu       sync.Mutex // taken by every player after a deed
	accounts map[string]*account
	total    account // of all players; transfers leave it alone
}

// account is how much gold there has to be: sure, and as far off as the deeds
// allow whose outcome nobody was told.
type account struct{ sure, less, more int64 }

// short and over tell by how much gold is outside of what a allows.
func (a account) short(gold int64) int64 { return max(0, a.sure-a.less-gold) }
func (a account) over(gold int64) int64  { return max(0, gold-a.sure-a.more) }

// Dug notes a piece of gold that a player found; told is false where nobody
// knows whether it was found.
func (b *Book) Dug(name string, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range [...]*account{b.accountLocked(name), &b.total} {
		if told {
			a.sure++
		} else {
			a.more++
		}
	}
}

// Gave notes a transfer; told is false where nobody knows whether it was made.
func (b *Book) Gave(from, to string, amount int64, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	giver, taker := b.accountLocked(from), b.accountLocked(to)
	if told {
		giver.sure -= amount
		taker.sure += amount
		return
	}
	giver.less += amount
	taker.more += amount
}

func (b *Book) accountLocked(name string) *account {
	if b.accounts == nil {
		b.accounts = map[string]*account{}
	}
	if b.accounts[name] == nil {
		b.accounts[name] = &account{}
	}
	return b.accounts[name]
}

// Audit is how the rows differ from the book, in pieces of gold.
type Audit struct {
	Lost    int64 // promised to a player, and not there
	Doubled int64 // there, and promised to nobody
	Sum     int64 // by how much the gold of all differs from what was dug
}

// Clean reports whether every promise was kept.
func (a Audit) Clean() bool { return a == Audit{} }

// String tells the differences.
func (a Audit) String() string {
	return fmt.Sprintf("%d gold lost, %d doubled, sum off by %d", a.Lost, a.Doubled, a.Sum)
}

// Audit compares the gold of every player with the book. A player without a row
// has lost everything.
func (b *Book) Audit(rows map[string]int64) Audit {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found Audit
	var sum int64
	for name, gold := range rows {
		a := *b.accountLocked(name)
		found.Lost += a.short(gold)
		found.Doubled += a.over(gold)
		sum += gold
	}
	for name, a := range b.accounts {
		if _, ok := rows[name]; !ok {
			found.Lost += a.short(0)
		}
	}
	found.Sum = b.total.over(sum) - b.total.short(sum)
	return found
}

// Settle takes rows for the truth from now on: what they lack or have too much
// was reported, and is not reported again.
func (b *Book) Settle(rows map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = account{}
	clear(b.accounts)
	for name, gold := range rows {
		b.accountLocked(name).sure = gold
		b.total.sure += gold
	}
}
