// A web application of Spring Boot that signs people in by OpenID Connect. All that it knows of the issuer comes from its
// settings: `spring.security.oauth2.client.*` with issuer-uri, client-id, client-secret and scope. GET / answers with the claims.
// With `consumer.userinfo=false` it takes them from the ID token alone.

package dev.grantry.consumer;

import static org.springframework.security.config.Customizer.withDefaults;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.annotation.RegisteredOAuth2AuthorizedClient;
import org.springframework.security.oauth2.client.oidc.web.logout.OidcClientInitiatedLogoutSuccessHandler;
import org.springframework.security.oauth2.client.oidc.userinfo.OidcUserService;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.csrf.CsrfToken;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@SpringBootApplication
public class Application {
  public static void main(String[] arguments) {
    SpringApplication.run(Application.class, arguments);
  }

  /** Everything needs a signed-in person; both logouts are on, RP-initiated and by back-channel. */
  @Bean
  SecurityFilterChain security(HttpSecurity http, ClientRegistrationRepository clients) throws Exception {
    var atIssuer = new OidcClientInitiatedLogoutSuccessHandler(clients);
    atIssuer.setPostLogoutRedirectUri("{baseUrl}/");
    return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
        .oauth2Login(withDefaults())
        .logout(logout -> logout.logoutSuccessHandler(atIssuer))
        .oidcLogout(logout -> logout.backChannel(withDefaults()))
        .build();
  }

  /** Access tokens for an API are not for userinfo; the ID token has all that userinfo would answer. */
  @Bean
  @ConditionalOnProperty(name = "consumer.userinfo", havingValue = "false")
  OidcUserService peopleOfIdTokens() {
    var people = new OidcUserService();
    people.setRetrieveUserInfo(request -> false);
    return people;
  }

  /** Refreshes an access token that lives no minute more; the claims of the session are then those of now. */
  @GetMapping("/refresh")
  String refresh(@RegisteredOAuth2AuthorizedClient("grantry") OAuth2AuthorizedClient client) {
    return client.getAccessToken().getTokenValue();
  }

  /** The claims of the ID token, and what the form of POST /logout needs. */
  @GetMapping("/")
  Map<String, Object> session(@AuthenticationPrincipal OidcUser person, CsrfToken csrf) {
    return Map.of("claims", person.getIdToken().getClaims(), "csrf", csrf.getToken());
  }
}
