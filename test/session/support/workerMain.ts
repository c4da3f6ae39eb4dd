import { main, type Order } from "./worker.ts"

// What the parent wrote, it wrote as this type.
main(JSON.parse(process.argv[2] ?? "{}") as Order).catch((error: unknown) => {
  process.stdout.write(`failed ${String(error)}\n`, () => process.exit(1))
})
