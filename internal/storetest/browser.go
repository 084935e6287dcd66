package storetest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
)

// browser is one player's client. It may be used by several goroutines.
type browser struct {
	site   *site
	home   *url.URL
	client *http.Client
}

func (s *site) browser() *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	home, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{site: s, home: home, client: &http.Client{Jar: jar, Transport: transport}}
}

// page is an answer that was read.
type page struct {
	status int
	header http.Header
	body   string
}

func (p page) setsCookie() bool { return p.header.Get("Set-Cookie") != "" }

// visit wants a whole answer, whatever its status.
func (b *browser) visit(path string) page {
	b.site.t.Helper()
	p, err := b.try(path)
	if err != nil {
		b.site.t.Fatalf("GET %s: %v", path, err)
	}
	return p
}

func (b *browser) try(path string) (page, error) {
	req, err := http.NewRequestWithContext(b.site.t.Context(), http.MethodGet, b.site.url+path, nil)
	if err != nil {
		return page{}, err
	}
	return b.do(req)
}

func (b *browser) do(req *http.Request) (page, error) {
	res, err := b.client.Do(req)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return page{res.StatusCode, res.Header, strings.TrimSpace(string(body))}, err
}

// all visits the paths at once and wants 200 of each.
func (b *browser) all(paths []string) []page {
	b.site.t.Helper()
	pages := make([]page, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			p, err := b.try(path)
			if err != nil || p.status != http.StatusOK {
				b.site.t.Errorf("GET %s: %d %s %v", path, p.status, p.body, err)
			}
			pages[i] = p
		})
	}
	wg.Wait()
	return pages
}

// token is what the browser holds as its session cookie.
func (b *browser) token() string {
	for _, cookie := range b.client.Jar.Cookies(b.home) {
		if cookie.Name == b.site.Settings.Cookie.Name {
			return cookie.Value
		}
	}
	return ""
}

// plant gives the browser a token.
func (b *browser) plant(token string) {
	b.client.Jar.SetCookies(b.home, []*http.Cookie{{Name: b.site.Settings.Cookie.Name, Value: token}})
}
