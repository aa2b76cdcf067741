/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the CUDA runtime, as people write them: each prints what it found, which must be the
 * same with the tenant library and without.
 *	runtime NAME
 */
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <thread>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <unistd.h>
#include <vector>

#define NEED(call)                                                                           \
	do {                                                                                 \
		cudaError_t e_ = (call);                                                     \
		if (e_ != cudaSuccess) {                                                     \
			printf("%s: %s\n", #call, cudaGetErrorName(e_));                     \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

static const int N = 1 << 20;
__device__ int in_module[1 << 20];
__constant__ int factor;
__managed__ int managed_sum;

__global__ void fill(int *p, int n, int v)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = v + i % 7;
}

__global__ void add_up(const int *p, int n, int *sum)
{
	int mine = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		mine += p[i];
	atomicAdd(sum, mine);
}

static int sum_of(const int *p, int n, cudaStream_t s = 0)
{
	int *sum, host = 0;

	NEED(cudaMallocAsync(&sum, 4, s));
	NEED(cudaMemsetAsync(sum, 0, 4, s));
	add_up<<<64, 256, 0, s>>>(p, n, sum);
	NEED(cudaMemcpyAsync(&host, sum, 4, cudaMemcpyDeviceToHost, s));
	NEED(cudaStreamSynchronize(s));
	NEED(cudaFreeAsync(sum, s));
	return host;
}

static void plain()
{
	int *p;

	NEED(cudaMalloc(&p, N * 4));
	fill<<<64, 256>>>(p, N, 3);
	printf("sum %d\n", sum_of(p, N));
	NEED(cudaFree(p));
}

static void reset()
{
	for (int i = 0; i < 3; i++) {
		plain();
		NEED(cudaDeviceReset());
	}
	plain();
}

static void leak()
{
	for (int i = 0; i < 50; i++) {
		int *p;

		NEED(cudaMalloc(&p, N * 4));
		fill<<<64, 256>>>(p, N, i);
	}
	NEED(cudaDeviceSynchronize());
	printf("leaks\n");
}

static void threads()
{
	std::vector<std::thread> all;
	int sums[8];

	for (int t = 0; t < 8; t++)
		all.emplace_back([t, &sums] {
			cudaStream_t s;
			int *p;

			NEED(cudaStreamCreate(&s));
			for (int i = 0; i < 20; i++) {
				NEED(cudaMallocAsync(&p, N * 4, s));
				fill<<<64, 256, 0, s>>>(p, N, t);
				sums[t] = sum_of(p, N, s);
				NEED(cudaFreeAsync(p, s));
			}
			NEED(cudaStreamDestroy(s));
		});
	for (auto &t : all)
		t.join();
	for (int t = 0; t < 8; t++)
		printf("%d ", sums[t]);
	printf("\n");
}

static void graph()
{
	cudaStream_t s;
	cudaGraph_t g;
	cudaGraphExec_t e;
	int *p, *sum, host[3] = {0};

	NEED(cudaStreamCreate(&s));
	NEED(cudaMalloc(&sum, 4));
	NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	NEED(cudaMallocAsync(&p, N * 4, s));
	NEED(cudaMemsetAsync(sum, 0, 4, s));
	fill<<<64, 256, 0, s>>>(p, N, 5);
	add_up<<<64, 256, 0, s>>>(p, N, sum);
	NEED(cudaFreeAsync(p, s));
	NEED(cudaStreamEndCapture(s, &g));
	NEED(cudaGraphInstantiate(&e, g, 0));
	for (int i = 0; i < 3; i++) {
		NEED(cudaGraphLaunch(e, s));
		NEED(cudaMemcpyAsync(&host[i], sum, 4, cudaMemcpyDeviceToHost, s));
	}
	NEED(cudaStreamSynchronize(s));
	printf("sums %d %d %d\n", host[0], host[1], host[2]);
	NEED(cudaGraphExecDestroy(e));
	NEED(cudaGraphDestroy(g));
	NEED(cudaDeviceGraphMemTrim(0));
}

__global__ void read_texture(cudaTextureObject_t t, float *out)
{
	out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 2.5f);
}

static void texture()
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t t;
	cudaMipmappedArray_t m;
	float in[64 * 64], host[64], *out;
	cudaArray_t a;

	for (int i = 0; i < 64 * 64; i++)
		in[i] = i * 0.5f;
	NEED(cudaMallocArray(&a, &f, 64, 64));
	NEED(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(256, 256, 0), 9));
	NEED(cudaMemcpy2DToArray(a, 0, 0, in, 256, 256, 64, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	d.readMode = cudaReadModeElementType;
	NEED(cudaCreateTextureObject(&t, &r, &d, NULL));
	NEED(cudaMalloc(&out, sizeof(host)));
	read_texture<<<1, 64>>>(t, out);
	NEED(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	printf("%.1f %.1f %.1f\n", host[0], host[7], host[63]);
	NEED(cudaDestroyTextureObject(t));
	NEED(cudaFreeArray(a));
	NEED(cudaFreeMipmappedArray(m));
}

__global__ void use_heap(int *sum)
{
	int *p = (int *)malloc(1000);

	if (!p)
		return;
	p[0] = threadIdx.x;
	atomicAdd(sum, p[0]);
	free(p);
	if (threadIdx.x == 0)
		printf("from the device\n");
}

__global__ void child(int *sum)
{
	atomicAdd(sum, 1);
}

__global__ void parent(int *sum)
{
	child<<<2, 32>>>(sum);
}

static void device()
{
	int *sum, host;

	NEED(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
	NEED(cudaMalloc(&sum, 4));
	NEED(cudaMemset(sum, 0, 4));
	use_heap<<<1, 128>>>(sum);
	NEED(cudaDeviceSynchronize());
	parent<<<1, 1>>>(sum);
	NEED(cudaMemcpy(&host, sum, 4, cudaMemcpyDeviceToHost));
	printf("sum %d\n", host);
}

__global__ void together(int *p)
{
	cooperative_groups::this_grid().sync();
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*p = gridDim.x;
	cooperative_groups::this_grid().sync();
}

static void cooperative()
{
	int *p, host;

	NEED(cudaMalloc(&p, 4));
	void *args[] = {&p};
	NEED(cudaLaunchCooperativeKernel((void *)together, dim3(16), dim3(64), args));
	NEED(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
	printf("blocks %d\n", host);
}

__global__ void frames(int *p, int n)
{
	volatile char frame[8192];

	for (int i = 0; i < n; i++)
		frame[(i * 977) % 8192] = i;
	*p = frame[(n * 31) % 8192] >= -128;
}

static void local()
{
	int *p, host;
	size_t stack;

	NEED(cudaMalloc(&p, 4));
	frames<<<1, 32>>>(p, 100);
	NEED(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
	NEED(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
	printf("%d, stack %zu\n", host, stack);
	NEED(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
	frames<<<1, 32>>>(p, 100);
	NEED(cudaDeviceSynchronize());
}

static void symbols()
{
	int f = 3, *p;
	void *at;

	NEED(cudaMemcpyToSymbol(factor, &f, 4));
	NEED(cudaGetSymbolAddress(&at, in_module));
	p = (int *)at;
	fill<<<64, 256>>>(p, N, 2);
	printf("sum %d\n", sum_of(p, N));
	managed_sum = 0;
	add_up<<<64, 256>>>(p, N, &managed_sum);
	NEED(cudaDeviceSynchronize());
	printf("managed %d\n", managed_sum);
}

static void managed()
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
	int *p;

	NEED(cudaMallocManaged(&p, N * 4));
	for (int i = 0; i < N; i++)
		p[i] = 1;
	NEED(cudaMemPrefetchAsync(p, N * 4, gpu, 0, 0));
	printf("sum %d\n", sum_of(p, N));
	NEED(cudaFree(p));
}

static void sort()
{
	thrust::device_vector<int> v(N);

	for (int round = 0; round < 5; round++) {
		fill<<<64, 256>>>(thrust::raw_pointer_cast(v.data()), N, round);
		thrust::sort(v.begin(), v.end());
		printf("%d ", thrust::reduce(v.begin(), v.end()));
	}
	printf("%d\n", (int)v[N - 1]);
}

static void pool()
{
	cudaMemPoolProps props = {};
	cudaMemPool_t p;
	int *a, *b;

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	NEED(cudaMemPoolCreate(&p, &props));
	NEED(cudaMallocFromPoolAsync(&a, N * 4, p, 0));
	fill<<<64, 256>>>(a, N, 4);
	printf("sum %d\n", sum_of(a, N));
	NEED(cudaFreeAsync(a, 0));
	NEED(cudaMallocFromPoolAsync(&b, N * 4, p, 0));
	NEED(cudaFree(b));
	NEED(cudaMemPoolTrimTo(p, 0));
	NEED(cudaMemPoolDestroy(p));
}

static void ipc(const char *self)
{
	cudaIpcMemHandle_t handle;
	char hex[2 * sizeof(handle) + 1];
	int *p, status;
	pid_t child;

	NEED(cudaMalloc(&p, N * 4));
	fill<<<64, 256>>>(p, N, 6);
	NEED(cudaDeviceSynchronize());
	NEED(cudaIpcGetMemHandle(&handle, p));
	for (size_t i = 0; i < sizeof(handle); i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *)&handle)[i]);
	child = fork();
	if (child == 0)
		execl(self, self, "opener", hex, NULL);
	waitpid(child, &status, 0);
	printf("child %d, sum %d\n", status, sum_of(p, N));
}

static void opener(const char *hex)
{
	cudaIpcMemHandle_t handle;
	void *p;

	for (size_t i = 0; i < sizeof(handle); i++)
		sscanf(hex + 2 * i, "%2hhx", &((unsigned char *)&handle)[i]);
	NEED(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess));
	printf("opened: sum %d\n", sum_of((int *)p, N));
	NEED(cudaIpcCloseMemHandle(p));
	fflush(stdout);
}

static void refused()
{
	void *p = (void *)1;

	printf("%s ", cudaGetErrorName(cudaMalloc(&p, (size_t)1 << 50)));
	printf("%s ", cudaGetErrorName(cudaMalloc(NULL, 5)));
	printf("%s ", cudaGetErrorName(cudaFree((void *)0x1234)));
	printf("%s ", cudaGetErrorName(cudaFree(NULL)));
	printf("%s ", cudaGetErrorName(cudaMalloc(&p, 0)));
	printf("%s\n", cudaGetErrorName(cudaMallocAsync(&p, (size_t)1 << 50, 0)));
	cudaGetLastError();
	plain();
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)();
	} all[] = {{"plain", plain}, {"reset", reset}, {"leak", leak}, {"threads", threads},
		{"graph", graph}, {"texture", texture}, {"device", device},
		{"cooperative", cooperative}, {"local", local}, {"symbols", symbols},
		{"managed", managed}, {"sort", sort}, {"pool", pool}, {"refused", refused}};

	if (argc > 1 && !strcmp(argv[1], "ipc"))
		return ipc(argv[0]), 0;
	if (argc > 2 && !strcmp(argv[1], "opener"))
		return opener(argv[2]), 0;
	for (auto &one : all)
		if (argc > 1 && !strcmp(argv[1], one.name))
			return one.run(), 0;
	for (auto &one : all)
		printf("%s\n", one.name);
	printf("ipc\n");
	return 0;
}
