/** Reads addresses of PostgreSQL. Without Effect, because `ctx` reads them. Spec: PG-54 in specs/postgres.md. */

/** Between the user and the place of the host, where there is none. */
const withoutHost = /^(postgres(?:ql)?:\/\/[^@/?#]*@)(?=[/?#])/i

/**
 * The address, or undefined if it is none. libpq takes a user without a host, which URLs do not know: the user and the
 * password become parameters.
 */
export const parse = (text: string): URL | undefined => {
  const given = text.replace(withoutHost, "$1-")
  if (!/^postgres(?:ql)?:\/\//i.test(text) || !URL.canParse(given)) return undefined
  const url = new URL(given)
  if (given === text) return url
  const words = Object.entries({ user: url.username, password: url.password })
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${value.replace(/[&+]/g, encodeURIComponent)}`)
  url.search = [...words, url.search.slice(1)].filter((part) => part !== "").join("&")
  url.username = url.password = ""
  url.host = ""
  return url
}

/** The address for messages: without user, password and settings. */
export const nameOf = ({ host, pathname, searchParams }: URL, schema?: string): string => {
  const words = Object.entries({ host: searchParams.get("host"), port: searchParams.get("port"), schema })
    .filter(([, value]) => value != null)
    .map(([name, value]) => `${name}=${value}`)
  return `postgres://${host}${pathname}${words.length === 0 ? "" : `?${words.join("&")}`}`
}
