// The texts of the pages in Simplified Chinese.

import type { Texts } from './texts.ts';

const REPORT = '请返回应用后重试。如果仍然出现此问题，请联系应用的运营方，并提供下方的请求编号。';

export const SIMPLIFIED_CHINESE: Texts = {
  language: 'zh-Hans',
  login: {
    title: '登录',
    lead: (client) => `以继续使用 ${client}`,
    leadToAccount: '以查看您的账号',
    username: '用户名',
    password: '密码',
    submit: '登录',
    usernameMissing: '请输入用户名。',
    passwordMissing: '请输入密码。',
    byPassword: '使用密码登录',
    signInBy: (provider) => `使用 ${provider} 登录`,
    problems: {
      missing: '用户名或密码未填写',
      wrong: { title: () => '用户名或密码不正确', advice: '请检查后重试。' },
      tooMany: { title: '尝试次数过多', advice: (seconds) => `请等待 ${duration(seconds)}后重试。` },
      busy: { title: () => '当前登录人数过多', advice: '请稍等几秒后重试。' },
      outdated: { title: () => '暂时无法完成登录', advice: '请稍等几秒后重试。' },
      cancelled: { title: (provider) => `在 ${provider} 的登录没有完成`, advice: '请重试，并在那里完成登录。' },
      unavailable: { title: (provider) => `暂时无法连接到 ${provider}`, advice: '请稍后重试。' },
      invalid: {
        title: (provider) => `无法使用 ${provider} 返回的结果`,
        advice: '请重试。如果仍然出现此问题，请咨询本服务器的管理员。',
      },
      notPermitted: {
        title: (username, provider) => `${provider} 的用户 ${username} 无权在此登录`,
        advice: '请使用其他账号登录，或咨询本服务器的管理员。',
      },
      notForPerson: {
        title: (username, provider) => `${provider} 的用户 ${username} 无权使用此应用`,
        advice: '请使用其他账号登录。',
      },
      notForLocal: { title: (username) => `${username} 无权使用此应用`, advice: '请使用其他账号登录。' },
      notOpen: { title: () => '此应用不支持这种登录方式', advice: '请选择其他方式。' },
    },
    noWay: '目前还无法登录此应用。请联系应用的运营方。',
    closedForNow: '暂时无法连接到登录服务。请稍后重新加载此页面。',
    note: (host) => `请只在 ${host} 上输入密码。应用无法看到您的密码。`,
  },
  consent: {
    title: (client) => `允许 ${client} 使用您的账号吗？`,
    signedInAs: '当前登录身份',
    otherAccount: '使用其他账号',
    wants: '该应用请求以下权限',
    wantsMore: '该应用请求更多权限',
    alreadyHas: '您此前已允许',
    at: '适用范围',
    goesTo: '您的选择将发送至',
    startedByYou: '仅当您刚刚自己启动了该程序时，才应同意。',
    claims: { name: '您的姓名', address: '您的电子邮件地址', groups: '您的群组' },
    details: '详细信息',
    andMore: (count) => `以及另外 ${count} 个`,
    onlySome: '只有部分账号可以使用此应用。仅当您的账号在其中时，该应用才保留访问权限。',
    howLong: '有效期',
    lasts: { sign_out: '直至您退出登录', revocation: '直至撤销授权' },
    lastsDetail: {
      sign_out: '在您于此处保持登录期间，该应用会保留访问权限，不再询问。',
      revocation: '即使您已退出登录，该应用也会保留访问权限，不再询问。',
    },
    revokeThere: '查看和撤销授权',
    allow: '同意',
    deny: '拒绝',
    website: '网站',
    privacy: '隐私政策',
    terms: '服务条款',
    scopes: {
      openid: '识别您的账号',
      profile: '查看您的姓名和个人资料',
      email: '查看您的电子邮件地址',
      groups: '查看您所属的群组',
      offline_access: '在您离开后保留访问权限',
    },
  },
  logout: {
    question: '退出登录？',
    signedInAs: (username) => `您当前以 ${username} 的身份登录。`,
    submit: '退出登录',
    done: '您已退出登录',
    doneAdvice: '您可以关闭此窗口。',
    signInAgain: '重新登录',
  },
  account: {
    titles: {
      overview: '您的账号',
      sessions: '登录位置',
      applications: '已授权的应用',
    },
    tabs: { overview: '账号', sessions: '会话', applications: '应用' },
    pages: '账号页面',
    questions: { everywhere: '在所有设备上退出登录？', session: '结束此会话？', revoke: '撤销授权？' },
    cancel: '取消',
    email: '电子邮件地址',
    signOut: '退出登录',
    signOutDetail: '在该浏览器中退出登录，并终止各应用在此会话中持有的权限。有效期更长的授权会保留，可在“应用”中查看。',
    signOutHere: '在此退出登录',
    signOutEverywhere: '在所有设备上退出登录',
    everywhereDetail:
      '在所有浏览器中退出登录，并终止各应用代您进行的操作，直到您重新登录这些应用。设备丢失时请使用此功能。',
    thisBrowser: '当前浏览器',
    otherBrowser: '其他浏览器',
    address: 'IP 地址',
    signedInAt: '登录时间',
    signedInBy: '登录方式',
    password: '密码',
    newestSessions: (count) => `还有更多登录记录。此处显示最近的 ${count} 条。`,
    noApplications: '没有应用可以访问您的账号。',
    unknownApplication: '已停止服务的应用',
    unknownDetail: '如果不撤销授权，该应用恢复服务后可能重新获得访问权限。',
    letInByDefault: '您的组织已允许该应用访问，无需您的同意。',
    mayDo: '您已同意的权限',
    firstUsed: '首次使用',
    lastUsed: '最近使用',
    neverUsed: '尚未使用',
    revoke: '撤销授权',
    revokeDetail:
      '撤销授权后，该应用将不再获得任何访问权限。再次使用时，您需要登录并重新授权。该应用可能保留已获得的信息，您在该应用中也可能仍处于登录状态。',
    livesOn: (seconds) => `此后，自行验证访问令牌的服务最长可能在 ${duration(seconds)}内仍接受其访问令牌。`,
    revoked: (client) => `${client} 已无法再访问您的账号。`,
    pageOf: (page, pages) => `第 ${page} 页，共 ${pages} 页`,
    next: '下一页',
    previous: '上一页',
  },
  destination: {
    thisComputer: (host) => `此计算机上的程序（${host}）`,
    appOnDevice: (scheme) => `此设备上的应用（${scheme}）`,
  },
  error: {
    requestId: '请求编号',
    goTo: (destination) => `前往 ${destination}`,
    notAsserted: {
      title: '应用的请求被拒绝',
      message: '引导您来到此处的应用请求了它无权获得的内容。您尚未登录。',
      advice: '仅当您认识以下地址并且曾访问过它时，才继续前往：',
    },
    client: {
      title: '无法在此使用该应用',
      message: '引导您来到此处的应用未在本服务器登记，或者被本服务器拒绝。',
      advice: REPORT,
    },
    application: {
      title: '应用的请求无效',
      message: '引导您来到此处的应用所发出的请求不完整或有误。',
      advice: REPORT,
    },
    redirectUri: {
      title: '返回地址没有登记',
      message: '该应用要求将您转到一个没有为其登记的地址，因此我们停在了这里。',
      advice: REPORT,
    },
    startAgain: {
      title: '此页面已无法使用',
      message: '此页面已过期、已被使用过，或者属于另一个浏览器。',
      advice: '请返回应用，从那里重新登录。您可以关闭此页面。',
    },
    account: {
      title: '没有进行任何更改',
      message: '您使用的页面已过期，或者属于另一个浏览器。',
      advice: '请重新打开您的账号页面后重试。',
    },
    tooMany: {
      title: '请求过多',
      message: '短时间内来自您所在网络的请求过多。',
      advice: '请等待一分钟后重试。',
    },
    unavailable: {
      title: '服务器暂时无法完成此操作',
      message: '暂时无法连接到所需的服务。',
      advice: '请稍等几秒后重新加载此页面，或返回应用并从那里登录。',
    },
    notFound: {
      title: '此地址没有对应的页面',
      message: '地址输入有误，或者您打开的链接不正确。',
      advice: '请检查地址，或返回您之前使用的应用。',
    },
    badRequest: {
      title: '请求的格式不被接受',
      message: '您的浏览器或引导您来到此处的应用发送了我们无法读取的内容。',
      advice: '请返回应用后重试。',
    },
    internal: {
      title: '服务器发生故障',
      message: '这是我们的故障，与您无关。',
      advice: '请稍后重试。如果仍然出现此问题，请联系管理员，并提供下方的请求编号。',
    },
  },
  footer: '由 grantry 提供授权服务',
};

/** Behind a space, with none after it. */
function duration(seconds: number): string {
  if (seconds > 2 * 3600) return `${Math.ceil(seconds / 3600)} 小时`;
  if (seconds > 120) return `${Math.ceil(seconds / 60)} 分钟`;
  return `${seconds} 秒`;
}
