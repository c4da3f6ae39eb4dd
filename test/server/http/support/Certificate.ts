/** A certificate for this machine that nobody but a test trusts. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

/** Makes one in a folder; returns the files of the certificate and its key. */
export const make = (folder: string) => {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")]
  const names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
  const subject = ["-subj", "/CN=localhost", "-addext", names, "-days", "2"]
  const keyOptions = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
  execFileSync("openssl", ["req", "-x509", ...keyOptions, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore"
  })
  return { cert, key }
}
