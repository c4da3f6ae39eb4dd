/**
 * Serves the inspector beside the HTTP API: its document at `/`, its files below `/inspector`. The files hold no data, so they
 * need no token; the page asks the API with the token of its address. Spec: IP-1..IP-3 in specs/inspector.md.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, type Layer } from "effect"
import type { Assets } from "./Assets.ts"
import { document, icon } from "./Document.ts"

/** Only what this origin serves is loaded, nothing is inline, and no string becomes HTML or a script. */
export const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")

const headers = {
  "cache-control": "no-cache",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
}

const file = (contentType: string, text: string) =>
  Effect.succeed(HttpServerResponse.setHeaders(HttpServerResponse.text(text, { contentType }), headers))

/** The routes of the page, in the router of the API's server. */
export const layer = ({ script, style }: Assets): Layer.Layer<never> =>
  HttpApiBuilder.Router.use((router) =>
    Effect.all([
      router.get("/", file("text/html; charset=utf-8", document)),
      router.get("/inspector/page.js", file("text/javascript; charset=utf-8", script)),
      router.get("/inspector/page.css", file("text/css; charset=utf-8", style)),
      router.get("/inspector/icon.svg", file("image/svg+xml", icon))
    ])
  )
