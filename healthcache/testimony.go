package healthcache

import (
	"context"
	"log/slog"
	"time"
)

// callForWitnesses begins a hint that concerns only those whom it names.
const callForWitnesses = "ask "

// members lists the instances that live.
func (f *fleet) members(ctx context.Context) ([]string, error) {
	list, err := membersScript.Run(ctx, f.client, []string{membersKey}).Slice()
	return texts(list), err
}

// ask calls for witnesses, and returns the moment of the call by Redis's clock.
func (f *fleet) ask(ctx context.Context, shard string, whom []string) (time.Time, error) {
	keys, args := make([]string, len(whom)), []any{shard, f.ttl.Milliseconds()}
	for i, w := range whom {
		keys[i] = mailKey(w)
		args = append(args, w)
	}
	millis, err := askScript.Run(ctx, f.client, keys, args...).Int64()
	return time.UnixMilli(millis), err
}

// testify writes this instance's word on a shard.
func (f *fleet) testify(ctx context.Context, shard, word string) error {
	return testifyScript.Run(ctx, f.client, []string{witnessKey(shard)}, f.token, word, f.ttl.Milliseconds()).Err()
}

// testimonies reads what the witnesses said of a shard lately.
func (f *fleet) testimonies(ctx context.Context, shard string, asked []string) (map[string]testimony, error) {
	args := make([]any, len(asked))
	for i, witness := range asked {
		args[i] = witness
	}
	words, err := hearScript.Run(ctx, f.client, []string{witnessKey(shard)}, args...).Slice()
	said := make(map[string]testimony, len(words))
	for i, word := range words {
		text, _ := word.(string)
		if t, ok := decodeTestimony(text); ok && i < len(asked) {
			said[asked[i]] = t
		}
	}
	return said, err
}

// accuse has others look at a shard that this instance finds down. An instance
// that is contradicted hands the shard's lease on: another has the better view.
func (c *Cache) accuse(ctx context.Context, shard string) {
	found := c.hear(ctx, shard)
	if ctx.Err() != nil {
		return
	}
	yield := c.board.judged(shard, found)
	if found != contradicted {
		return
	}
	c.cfg.Logger.Warn("shard is down for this instance alone", slog.String("shard", shard))
	if yield {
		ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
		defer cancel()
		// A lease that could not be handed back ends by itself.
		_ = c.fleet.release(ctx, []string{shard})
	}
}

// hear asks the witnesses and waits for their words, for a probe's time and a
// beat. Where nobody can be asked, nobody contradicts. A call that Redis did not
// answer is made again when it does.
func (c *Cache) hear(parent context.Context, shard string) verdict {
	ctx, cancel := context.WithTimeout(parent, c.cfg.hearing())
	defer cancel()
	members, err := c.fleet.members(ctx)
	asked := witnesses(shard, c.fleet.token, c.board.proberOf(shard), members)
	if err != nil || len(asked) == 0 {
		return c.nobodyAsked(err)
	}
	since, err := c.fleet.ask(ctx, shard, asked)
	if err != nil {
		return c.nobodyAsked(err)
	}
	look := time.NewTicker(c.cfg.hearing() / 20)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.lastWord(parent, shard, since)
		case <-look.C:
		}
		// What cannot be read now can be read at the next look.
		said, _ := c.fleet.testimonies(ctx, shard, asked)
		if v := judge(asked, said, since); v != unjudged {
			return v
		}
	}
}

// nobodyAsked is the verdict where err, if any, kept witnesses from being heard. An
// instance to which Redis gives no answer stands alone, until the next exchange.
func (c *Cache) nobodyAsked(err error) verdict {
	if err != nil && !answered(err) {
		c.board.deaf()
	}
	return agreed
}

// lastWord is the verdict where a witness did not speak in time: the prober,
// if it is another instance, has meanwhile written what it saw.
func (c *Cache) lastWord(ctx context.Context, shard string, since time.Time) verdict {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	r, err := c.fleet.read(ctx, []string{shard}, nil, time.Time{})
	if err != nil || r.shards[shard].lease.value == c.fleet.token {
		return c.nobodyAsked(err)
	}
	s, err := decodeStatus(r.shards[shard].health.value, newClock(r.clock, c.cfg.life()))
	if err == nil && s.State != Down && s.State != Suspect && s.CheckedAt.After(since) {
		return contradicted
	}
	return agreed
}
