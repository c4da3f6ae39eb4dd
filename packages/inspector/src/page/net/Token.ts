/**
 * The token of this tab: comes once after `#` in the address, which no server sees, and then lives in the tab's storage.
 * Spec: IP-4 in specs/inspector.md.
 */
const key = "daybook.token"

/** Takes a token out of the address; returns the tab's token, if it has one. */
export const takeToken = (): string | undefined => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token")
  if (given !== null) {
    sessionStorage.setItem(key, given)
    history.replaceState(null, "", `${location.pathname}#/`)
  }
  return sessionStorage.getItem(key) ?? undefined
}

export const keepToken = (token: string): void => sessionStorage.setItem(key, token)
