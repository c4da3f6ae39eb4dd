/** What the router does not say: the methods of a path, and which endpoints take no query. Pure. Spec: HT-3, HT-502 in specs/http.md. */
import * as HttpApi from "@effect/platform/HttpApi"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import { Option } from "effect"
import { Api } from "@daybook/api"

interface Route {
  readonly method: string
  /** With its parameters, as `/sessions/:sessionID`. */
  readonly path: string
}

const routes: Array<Route & { readonly pattern: RegExp }> = []
const withoutQuery = new Set<string>()
const nameOf = ({ method, path }: Route): string => `${method} ${path}`
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { method, path, urlParamsSchema } }) => {
    routes.push({ method, path, pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`) })
    if (Option.isNone(urlParamsSchema)) withoutQuery.add(nameOf({ method, path }))
  }
})

/** The methods of the endpoints at a path, which has no query. */
export const methodsOf = (path: string): ReadonlyArray<string> => {
  const found = routes.flatMap(({ method, pattern }) => (pattern.test(path) ? [method] : []))
  return [...new Set(found.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))]
}

/** Refuses the parameters in the query of an endpoint that takes none: a misspelt or misplaced one would have no effect. */
export const refusedQuery = (route: Route, url: string): HttpApiDecodeError | undefined => {
  const at = url.indexOf("?")
  if (at < 0 || !withoutQuery.has(nameOf(route))) return undefined
  const issues = [...new Set(new URLSearchParams(url.slice(at)).keys())].map((name) => ({
    _tag: "Unexpected" as const,
    path: [name],
    message: "is unexpected: the endpoint takes no query"
  }))
  return issues.length === 0 ? undefined : new HttpApiDecodeError({ issues, message: "the query is unexpected" })
}
