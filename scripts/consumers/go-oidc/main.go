// A web application in Go. Of an issuer it signs people in by go-oidc: discovery, nonce, the check of the ID token. Without
// one it sends the requests that Grafana's generic OAuth documents, by the variables that are Grafana's settings.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// application is one session: there is one person at a time.
type application struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
	userinfo string
	// Where a sign-out goes, with the ID token as a hint.
	signOut string

	lock  sync.Mutex
	state string
	nonce string
	pkce  string
	token *oauth2.Token
}

func main() {
	listen := flag.String("listen", "", "host:port")
	issuer := flag.String("issuer", "", "by discovery; instead of the three addresses")
	id := flag.String("client-id", "", "")
	secret := flag.String("client-secret", "", "")
	flag.Parse()
	a := grafana("http://" + *listen)
	if *issuer != "" {
		var err error
		if a, err = discovered(*issuer, oauth2.Config{
			ClientID:     *id,
			ClientSecret: *secret,
			RedirectURL:  "http://" + *listen + "/callback",
			Scopes:       strings.Fields("openid profile email groups"),
		}); err != nil {
			log.Fatal(err)
		}
	}
	callback, err := url.Parse(a.config.RedirectURL)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/login", a.login)
	http.HandleFunc(callback.Path, a.answering(a.callback))
	http.HandleFunc("/refresh", a.answering(a.refresh))
	http.HandleFunc("/logout", a.logout)
	log.Fatal(http.ListenAndServe(*listen, nil))
}

// discovered knows the addresses from the metadata of the issuer.
func discovered(issuer string, config oauth2.Config) (*application, error) {
	provider, err := oidc.NewProvider(context.Background(), issuer)
	if err != nil {
		return nil, err
	}
	var more struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, err
	}
	config.Endpoint = provider.Endpoint()
	return &application{
		config:   config,
		userinfo: provider.UserInfoEndpoint(),
		signOut:  more.EndSession + "?client_id=" + url.QueryEscape(config.ClientID),
		verifier: provider.Verifier(&oidc.Config{ClientID: config.ClientID}),
	}, nil
}

// grafana knows them from the environment. Its secret goes by HTTP Basic first, and PKCE is on: GF_AUTH_GENERIC_OAUTH_USE_PKCE.
func grafana(rootURL string) *application {
	setting := func(name string) string { return os.Getenv("GF_AUTH_GENERIC_OAUTH_" + name) }
	return &application{
		userinfo: setting("API_URL"),
		signOut:  setting("SIGNOUT_REDIRECT_URL"),
		config: oauth2.Config{
			ClientID:     setting("CLIENT_ID"),
			ClientSecret: setting("CLIENT_SECRET"),
			Endpoint:     oauth2.Endpoint{AuthURL: setting("AUTH_URL"), TokenURL: setting("TOKEN_URL")},
			RedirectURL:  rootURL + "/login/generic_oauth",
			Scopes:       strings.Fields(setting("SCOPES")),
		},
	}
}

func (a *application) login(w http.ResponseWriter, r *http.Request) {
	a.lock.Lock()
	defer a.lock.Unlock()
	// Verifiers are random texts of 43 characters.
	a.state, a.nonce, a.pkce = oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	var options []oauth2.AuthCodeOption
	if a.verifier != nil || os.Getenv("GF_AUTH_GENERIC_OAUTH_USE_PKCE") == "true" {
		options = append(options, oauth2.S256ChallengeOption(a.pkce))
	}
	if a.verifier != nil {
		options = append(options, oidc.Nonce(a.nonce))
	}
	http.Redirect(w, r, a.config.AuthCodeURL(a.state, options...), http.StatusFound)
}

// logout forgets the session and goes on to the provider.
func (a *application) logout(w http.ResponseWriter, r *http.Request) {
	a.lock.Lock()
	defer a.lock.Unlock()
	idToken, _ := a.token.Extra("id_token").(string)
	a.token = nil
	http.Redirect(w, r, a.signOut+"&id_token_hint="+url.QueryEscape(idToken), http.StatusFound)
}

func (a *application) callback(r *http.Request) (any, error) {
	if r.FormValue("state") != a.state {
		return nil, errors.New("state of another sign-in")
	}
	if code := r.FormValue("error"); code != "" {
		return nil, errors.New(code)
	}
	token, err := a.config.Exchange(r.Context(), r.FormValue("code"), oauth2.VerifierOption(a.pkce))
	if err != nil {
		return nil, err
	}
	return a.read(r.Context(), token, true)
}

// refresh takes the token for expired.
func (a *application) refresh(r *http.Request) (any, error) {
	if a.token == nil {
		return nil, errors.New("not signed in")
	}
	old := *a.token
	old.Expiry = time.Unix(1, 0)
	token, err := a.config.TokenSource(r.Context(), &old).Token()
	if err != nil {
		return nil, err
	}
	return a.read(r.Context(), token, false)
}

// read answers with what a token tells of the person; first, at the sign-in.
func (a *application) read(ctx context.Context, token *oauth2.Token, first bool) (any, error) {
	a.token = token
	userinfo, err := a.get(ctx, token)
	if err != nil {
		return nil, err
	}
	raw, _ := token.Extra("id_token").(string)
	if a.verifier == nil {
		return map[string]any{"userinfo": userinfo, "idToken": raw}, nil
	}
	idToken, err := a.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	// At a refresh there is none, or still the first.
	if idToken.Nonce != a.nonce && (first || idToken.Nonce != "") {
		return nil, errors.New("nonce of another sign-in")
	}
	if idToken.AccessTokenHash != "" {
		if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, err
		}
	}
	var claims map[string]any
	if err := idToken.Claims(&claims); err != nil {
		return nil, err
	}
	return map[string]any{"claims": claims, "userinfo": userinfo, "idToken": raw}, nil
}

func (a *application) get(ctx context.Context, token *oauth2.Token) (map[string]any, error) {
	response, err := a.config.Client(ctx, token).Get(a.userinfo)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("userinfo answered %d", response.StatusCode)
	}
	var claims map[string]any
	return claims, json.Unmarshal(body, &claims)
}

// answering makes JSON of what a handler answers, or a 500 of its error. One request at a time.
func (a *application) answering(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.lock.Lock()
		defer a.lock.Unlock()
		answer, err := handle(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Print(err)
		}
	}
}
