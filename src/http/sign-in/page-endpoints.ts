// The list of HTML endpoints: the steps of a sign-in and of a sign-out, and the files that its pages link to.

import { ICON, type PageAsset } from '../pages/page-assets.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { authorizeEndpoint } from './authorize.ts';
import { consentEndpoint } from './consent.ts';
import { loginEndpoint } from './login.ts';
import { logoutConfirmEndpoint, logoutEndpoint } from './logout.ts';
import { resumeEndpoint } from './resume.ts';
import type { SignInFlow } from './sign-in-flow.ts';
import { upstreamCallbackEndpoint } from './upstream-callback.ts';
import { upstreamSignInEndpoint } from './upstream-sign-in.ts';

/** /authorize, /login, /consent, /authorize/resume, /logout, the style sheet, the icon and the logo. */
export function pageEndpoints(flow: SignInFlow): readonly Endpoint[] {
  return [
    authorizeEndpoint(flow),
    loginEndpoint(flow),
    upstreamSignInEndpoint(flow),
    upstreamCallbackEndpoint(flow),
    consentEndpoint(flow),
    resumeEndpoint(flow),
    logoutEndpoint(flow),
    logoutConfirmEndpoint(flow),
    assetEndpoint('stylesheet', flow.brand.stylesheet),
    assetEndpoint('icon', ICON),
    ...(flow.brand.logo === undefined ? [] : [logoEndpoint(flow.brand.logo)]),
  ];
}

/** A file whose path changes with its content. */
function assetEndpoint(
  route: string,
  { path, content, contentType }: PageAsset,
  headers: Readonly<Record<string, string>> = {},
): Endpoint {
  return {
    route,
    path,
    handlers: {
      GET: async ({ reply }) => {
        reply.header('cache-control', 'public, max-age=31536000, immutable').headers(headers);
        reply.type(contentType).send(content);
      },
    },
    answers: 'html',
    cors: 'none',
    head: true,
  };
}

/** An SVG is a document, with scripts, to a browser that opens it by itself: it runs none, and has no origin. */
function logoEndpoint(logo: PageAsset): Endpoint {
  return assetEndpoint('logo', logo, {
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  });
}
