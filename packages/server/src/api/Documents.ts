/** The description of the API, for programs and for people. Spec: HT-2 in specs/http.md. */
import { openApi as described } from "@daybook/api/document/Document"
import type { Page, Pages } from "./Gate.ts"
import * as Reference from "./Reference.ts"

const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

const document = once(described)

const openApi = once((): Page => ({ contentType: "application/json", body: JSON.stringify(document()) }))

const reference = once((): Page => ({
  contentType: "text/html; charset=utf-8",
  body: Reference.html(document()),
  policy: Reference.policy
}))

/** Made when they are first read: it takes a third of a second. */
export const pages: Pages = new Map([
  ["/openapi.json", openApi],
  ["/reference", reference]
])
