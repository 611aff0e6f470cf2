// A web application in Go. Of an issuer it signs people in by go-oidc: discovery, nonce, the check of the ID token. Without
// one it sends the requests that Grafana's generic OAuth documents, to the three addresses that Grafana's settings name.
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

	lock  sync.Mutex
	state string
	nonce string
	pkce  string
	token *oauth2.Token
}

func main() {
	listen := flag.String("listen", "", "host:port")
	issuer := flag.String("issuer", "", "by discovery; instead of the three addresses")
	authURL := flag.String("auth-url", "", "auth_url of Grafana")
	tokenURL := flag.String("token-url", "", "token_url of Grafana")
	apiURL := flag.String("api-url", "", "api_url of Grafana")
	id := flag.String("client-id", "", "")
	secret := flag.String("client-secret", "", "")
	scopes := flag.String("scopes", "openid profile email groups", "")
	flag.Parse()
	a := &application{
		userinfo: *apiURL,
		config: oauth2.Config{
			ClientID:     *id,
			ClientSecret: *secret,
			Endpoint:     oauth2.Endpoint{AuthURL: *authURL, TokenURL: *tokenURL},
			RedirectURL:  "http://" + *listen + "/callback",
			Scopes:       strings.Fields(*scopes),
		},
	}
	if *issuer != "" {
		provider, err := oidc.NewProvider(context.Background(), *issuer)
		if err != nil {
			log.Fatal(err)
		}
		a.config.Endpoint = provider.Endpoint()
		a.userinfo = provider.UserInfoEndpoint()
		a.verifier = provider.Verifier(&oidc.Config{ClientID: *id})
	}
	http.HandleFunc("/login", a.login)
	http.HandleFunc("/callback", a.answering(a.callback))
	http.HandleFunc("/refresh", a.answering(a.refresh))
	log.Fatal(http.ListenAndServe(*listen, nil))
}

func (a *application) login(w http.ResponseWriter, r *http.Request) {
	a.lock.Lock()
	defer a.lock.Unlock()
	// Verifiers are random texts of 43 characters.
	a.state, a.nonce, a.pkce = oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(a.pkce)}
	if a.verifier != nil {
		options = append(options, oidc.Nonce(a.nonce))
	}
	http.Redirect(w, r, a.config.AuthCodeURL(a.state, options...), http.StatusFound)
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
