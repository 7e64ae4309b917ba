// Three calls by the client that hey-api generates: a list, a write, and a write that cannot be undone.
//
// Arguments: the address of the server, and the organization. The token comes from PROVOST_TOKEN.

import { client } from './hey-api/client.gen';
import {
  createHeadlessServiceAccount,
  deleteHeadlessServiceAccount,
  listHeadlessServiceAccounts,
} from './hey-api/sdk.gen';

declare const process: { argv: string[]; env: Record<string, string | undefined> };

client.setConfig({ baseUrl: process.argv[2], auth: process.env.PROVOST_TOKEN, throwOnError: true });

function must(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what));
}

const path = { organizationId: process.argv[3] };
const made = await createHeadlessServiceAccount({
  path,
  body: {
    name: 'by generated types',
    permissionRole: 'viewer',
    scopes: ['policies:read'],
    reason: 'generated',
    idempotencyKey: 'generated-types-1',
  },
  throwOnError: true,
});
// 202 answers who asks for a second person, with requestApproval in the query; nobody does here.
must('serviceAccount' in made.data, made.data);
const account = made.data.serviceAccount;
must(account.name === 'by generated types', made.data);
const found = await listHeadlessServiceAccounts({ path, throwOnError: true });
must(found.data.serviceAccounts.some((one) => one.id === account.id), found.data);
const gone = await deleteHeadlessServiceAccount({
  path: { ...path, serviceAccountId: account.id },
  headers: { 'Idempotency-Key': 'generated-types-2', 'X-Reason': 'generated', 'X-Confirm': 'true' },
  throwOnError: true,
});
must(gone.response.status === 204, gone);
console.log('created, found and deleted an account');
