// Gets a token for a client itself with the library of Nimbus, by one way of authentication, and prints it:
// java NimbusClient assertion ISSUER CLIENT_ID KEY.json
// java NimbusClient dpop ISSUER CLIENT_ID SECRET     (two tokens by one key; prints the second and the key's thumbprint)
// java NimbusClient certificate ISSUER CLIENT_ID KEYSTORE.p12 SERVER_CA.pem METHOD

import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.ECKey;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.oauth2.sdk.ClientCredentialsGrant;
import com.nimbusds.oauth2.sdk.Scope;
import com.nimbusds.oauth2.sdk.TokenRequest;
import com.nimbusds.oauth2.sdk.TokenResponse;
import com.nimbusds.oauth2.sdk.as.AuthorizationServerMetadata;
import com.nimbusds.oauth2.sdk.auth.ClientAuthentication;
import com.nimbusds.oauth2.sdk.auth.ClientSecretBasic;
import com.nimbusds.oauth2.sdk.auth.JWTAuthenticationClaimsSet;
import com.nimbusds.oauth2.sdk.auth.PKITLSClientAuthentication;
import com.nimbusds.oauth2.sdk.auth.PrivateKeyJWT;
import com.nimbusds.oauth2.sdk.auth.Secret;
import com.nimbusds.oauth2.sdk.auth.SelfSignedTLSClientAuthentication;
import com.nimbusds.oauth2.sdk.dpop.DPoPProofFactory;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.http.HTTPRequest;
import com.nimbusds.oauth2.sdk.http.HTTPResponse;
import com.nimbusds.oauth2.sdk.id.Audience;
import com.nimbusds.oauth2.sdk.id.ClientID;
import com.nimbusds.oauth2.sdk.id.Issuer;
import com.nimbusds.oauth2.sdk.token.AccessToken;
import com.nimbusds.openid.connect.sdk.Nonce;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

public final class NimbusClient {
    private static final char[] PASSWORD = "changeit".toCharArray();

    public static void main(String[] words) throws Exception {
        Issuer issuer = new Issuer(words[1]);
        ClientID clientId = new ClientID(words[2]);
        AuthorizationServerMetadata metadata = AuthorizationServerMetadata.resolve(issuer);
        switch (words[0]) {
            case "assertion" -> System.out.println(withAssertion(metadata, clientId, words[3]));
            case "dpop" -> System.out.println(withProofs(metadata, clientId, words[3]));
            case "certificate" -> System.out.println(
                withCertificate(metadata, clientId, socketFactory(words[3], words[4]), words[5]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static AccessToken withAssertion(AuthorizationServerMetadata metadata, ClientID clientId, String keyFile)
        throws Exception {
        ECKey key = ECKey.parse(Files.readString(Path.of(keyFile)));
        // The claims as the library chooses them: an expiry and an id, no time of issue.
        var claims = new JWTAuthenticationClaimsSet(clientId, new Audience(metadata.getIssuer().getValue()));
        var assertion = new PrivateKeyJWT(claims, JWSAlgorithm.ES256, key.toECPrivateKey(), null, null);
        return tokenOf(request(metadata.getTokenEndpointURI(), assertion).send());
    }

    private static String withProofs(AuthorizationServerMetadata metadata, ClientID clientId, String secret)
        throws Exception {
        ECKey key = new ECKeyGenerator(Curve.P_256).generate();
        DPoPProofFactory proofs = new DefaultDPoPProofFactory(key, JWSAlgorithm.ES256);
        URI endpoint = metadata.getTokenEndpointURI();
        ClientAuthentication authentication = new ClientSecretBasic(clientId, new Secret(secret));
        AccessToken token = null;
        Nonce nonce = null;
        for (int time = 0; time < 2; time++) {
            HTTPResponse answer = prove(request(endpoint, authentication), proofs, nonce);
            if (answer.getStatusCode() == 400 && answer.getDPoPNonce() != null) {
                answer = prove(request(endpoint, authentication), proofs, answer.getDPoPNonce());
            }
            if (answer.getDPoPNonce() != null) nonce = answer.getDPoPNonce();
            token = tokenOf(answer);
        }
        return token + " " + key.computeThumbprint();
    }

    private static HTTPResponse prove(HTTPRequest request, DPoPProofFactory proofs, Nonce nonce) throws Exception {
        request.setDPoP(proofs.createDPoPJWT("POST", request.getURI(), nonce));
        return request.send();
    }

    private static AccessToken withCertificate(
        AuthorizationServerMetadata metadata, ClientID clientId, SSLSocketFactory sockets, String method)
        throws Exception {
        ClientAuthentication authentication = method.equals("self_signed_tls_client_auth")
            ? new SelfSignedTLSClientAuthentication(clientId, sockets)
            : new PKITLSClientAuthentication(clientId, sockets);
        URI endpoint = metadata.getReadOnlyMtlsEndpointAliases().getTokenEndpointURI();
        return tokenOf(request(endpoint, authentication).send());
    }

    private static HTTPRequest request(URI endpoint, ClientAuthentication authentication) {
        return new TokenRequest(endpoint, authentication, new ClientCredentialsGrant(), new Scope("read")).toHTTPRequest();
    }

    private static AccessToken tokenOf(HTTPResponse answer) throws Exception {
        TokenResponse response = TokenResponse.parse(answer);
        if (!response.indicatesSuccess()) throw new IllegalStateException(answer.getStatusCode() + " " + answer.getBody());
        return response.toSuccessResponse().getTokens().getAccessToken();
    }

    /** Of a client that shows the certificate of the key store and trusts one authority. */
    private static SSLSocketFactory socketFactory(String keyStoreFile, String authorityFile) throws Exception {
        KeyStore own = KeyStore.getInstance("PKCS12");
        try (InputStream stream = Files.newInputStream(Path.of(keyStoreFile))) {
            own.load(stream, PASSWORD);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(own, PASSWORD);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (InputStream stream = Files.newInputStream(Path.of(authorityFile))) {
            trusted.setCertificateEntry("server", CertificateFactory.getInstance("X.509").generateCertificate(stream));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }
}
